"""Secrets are taken out of a text before it is stored elsewhere, told to another session or sent away. Pure, no I/O.

What looks like a key, a token or a password is replaced, and so is whatever stands where one belongs. Hashes of commits
and UUIDs stay: they are what an agent needs in order to find its work again. So does what only stands for a secret.

Importing this compiles next to nothing: a daemon's first hook waits for it. The rules are imported by the first text
that could hold a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.redaction.mask import MASK

__all__ = ["MASK", "Span", "found", "masked"]

Span = tuple[int, int]
ROUNDS = 20
"""A secret taken out can lay open the next one; nearly always the second round finds nothing."""

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


def _could_hold_one(text: str) -> bool:
    """Whether a text has anything that every secret comes with; plain sentences, paths and times have none of it."""
    # What is told of digits and signs lies close around them: looking there takes a tenth of the time.
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
    # Other scripts than Latin, without punctuation, arrows and the like.
    return not text.isascii() and any("\u0370" <= char < "\u2000" or char >= "\u2e80" for char in text)


def found(text: str) -> list[Span]:
    """Where a text holds secrets: begin and end of each, in order, none within another."""
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
    """Return what of a span is not masked yet: a mask is never masked again."""
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
    """The same text without its secrets."""
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
    if _could_hold_one(text):
        from holdfast.redaction.detector import spans  # compiling its expressions takes 20 ms

        yield from spans(text)
