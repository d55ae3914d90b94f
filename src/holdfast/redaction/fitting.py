"""Checks whether a value fits the rule that found it: a key, a program's output, a card number. Pure."""

from __future__ import annotations

import re

from holdfast.redaction.chosen import is_coined
from holdfast.redaction.technical import is_technical
from holdfast.redaction.values import is_code, is_dense, is_mixed, is_path, is_strong, is_uuid

_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]{32,128}\Z")
_METHOD = re.compile(
    r"(?i)(?:sha|md|blake|hs|rs|es|ps|ripemd|aes|des|chacha|utf|base|hmac|rsa|gcm|cbc|ecb|ctr)[\w/-]{0,24}\Z"
)
MIN_CARD_DIGITS = 13


def is_key(value: str) -> bool:
    """Return whether a value in a call could be a key, and not a method name."""
    if _HEX.match(value):
        return True
    return is_strong(value, 6) and not _METHOD.match(value) and not is_path(value) and not is_technical(value)


def is_printed(value: str) -> bool:
    """Return whether a word alone in a line is a secret that a program printed."""
    if is_path(value) or is_uuid(value) or "://" in value or value.endswith((":", "(", "{", ",", ";")):
        return False
    if _HEX.match(value):
        return len(value) not in (40, 64)
    return (is_mixed(value) and not is_code(value)) or is_coined(value) or is_dense(value)


def is_card(value: str) -> bool:
    """Return whether a number has a valid card check digit."""
    digits = [int(char) for char in value if char.isdigit()]
    if len(digits) < MIN_CARD_DIGITS or len(set(digits)) < 2:
        return False
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
