"""Masks secrets in a text before it is stored elsewhere, shown to another session or sent out. Pure, no I/O.

Whatever looks like a key, a token or a password is replaced, and so is any value where one belongs. Commit hashes and
UUIDs stay: an agent needs them to find its work again. So do placeholders for secrets.

Importing this compiles next to nothing, because a daemon's first hook waits for it. The rules are imported with the
first text that may hold a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.redaction.mask import MASK

__all__ = ["MASK", "Span", "found", "masked"]

Span = tuple[int, int]
ROUNDS = 20
"""Maximum passes: removing one secret can expose the next; the second pass nearly always finds nothing."""

_LETTER = re.compile(r"\w")
_NOTABLE = re.compile(r"[^a-zA-Z\s.,;()/_?]")
_SIGNS = frozenset('=：@$%^|"`')
_PLAIN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ \t\n\r\v\f.,;()/_?"
_WITH_DIGITS = re.compile(
    r"[^\W\d]-\d|(?:[^\W\d]\d|\d[^\W\d])(?<!-\d\dT)(?<!-\d\dT\d)(?<!\d\dZ)|\d{4}[ -]\d{4}(?!-)|\d{6}|\[\d|11[.):]"
)
_WITH_SIGNS = re.compile(
    r"[!&*](?=\w)|#(?!\d{1,6}(?!\w))(?=\w)|(?<=\w)#|(?<![a-z])'|'(?![a-z])|:(?!\s)(?!(?<=\d:)\d\d)|(?:^|\s)-[A-Za-z]|(?<![^\W\d])[upUP]\s?:"
)
_OF_SECRETS = (
    "pass", "pwd", "psk", "senha", "word", "wort", "secret", "community", "identified", "seed", "mnemonic", "phrase", " pin", "pin ", "pin:", "pin=", "code", "cred", "heslo", "sandi", "salasana",
    "khẩu", "kod", "şifre", "geslo", "lozink", "combination",
)  # fmt: skip


def _may_hold_secret(text: str) -> bool:
    """Return whether a text has any sign of a secret; plain sentences, paths and times have none."""
    # The evidence is close to digits and signs: searching only there takes a tenth of the time.
    rest = text.encode("utf-8", "surrogatepass").translate(None, _PLAIN)
    for one in _NOTABLE.finditer(text) if rest else ():
        place = one.start()
        char = text[place]
        if char in _SIGNS:
            return True
        near = _WITH_DIGITS if char.isdigit() else _WITH_SIGNS
        if near.search(text, place - 2 if place > 2 else 0, place + 9):
            return True
    lowered = text.lower()
    for word in _OF_SECRETS:
        if word in lowered:
            return True
    # Scripts other than Latin, without punctuation, arrows and the like.
    return not text.isascii() and any("\u0370" <= char < "\u2000" or char >= "\u2e80" for char in text)


def found(text: str) -> list[Span]:
    """Return the start and end of each secret in a text, in order and without overlaps."""
    merged: list[Span] = []
    spans = list(_found(text))
    if MASK in text:
        spans = [part for span in spans for part in _without_masks(text, span)]
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _without_masks(text: str, span: Span) -> Iterator[Span]:
    """Yield the parts of a span that are not masked yet: a mask is never masked again."""
    start, end = span
    place = text.find(MASK, max(0, start - len(MASK) + 1), end + len(MASK) - 1)
    while place >= 0:
        if _LETTER.search(text, start, max(start, place)):
            yield start, place
        start = max(start, place + len(MASK))
        place = text.find(MASK, start, end + len(MASK) - 1)
    if start == span[0] or _LETTER.search(text, start, max(start, end)):
        yield start, end


def masked(text: str) -> str:
    """Return the text with its secrets masked."""
    for _ in range(ROUNDS):
        spans = found(text)
        if not spans:
            break
        parts, end = [], 0
        for start, following in spans:
            parts += [text[end:start], MASK]
            end = following
        text = "".join([*parts, text[end:]])
    return text


def _found(text: str) -> Iterator[Span]:
    if _may_hold_secret(text):
        from holdfast.redaction.detector import spans  # compiling its expressions takes 20 ms

        yield from spans(text)
