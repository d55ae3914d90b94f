"""Secrets are taken out of a text before it is stored elsewhere, told to another session or sent away. Pure, no I/O.

What looks like a key, a token or a password is replaced, and so is whatever stands where one belongs. Hashes of commits
and UUIDs stay: they are what an agent needs in order to find its work again. So does what only stands for a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.redaction.assignments import assigned_spans, option_spans
from holdfast.redaction.contexts import NEEDLES, context_spans, named_spans
from holdfast.redaction.literals import Strings, shortest
from holdfast.redaction.prose import PROSE_BEGINNINGS, prose_spans
from holdfast.redaction.tables import table_spans
from holdfast.redaction.tokens import Span, token_spans
from holdfast.redaction.values import MASK, NAME_WORDS

__all__ = ["MASK", "Span", "found", "masked"]

ROUNDS = 20
"""A secret taken out can lay open the next one; nearly always the second round finds nothing."""
_NAMES = frozenset(shortest({*NAME_WORDS, *PROSE_BEGINNINGS, "_pw", "pw=", "-pw", "pw:", "pw "} - {"pw"}))
"""A text without any of these, in lower case, names no secret."""


_STRINGS = Strings([*_NAMES, *NEEDLES])
_LETTER = re.compile(r"\w")
_HINT = re.compile(
    r"[0-9=:：!@#$%^&*|\"'`]|\s-|(?i:pass|pwd|senha|word|wort|auth|secret|community|identified|seed|mnemonic)|[^\x00-\u024f]"
)
"""What every text holds that could hold a secret; plain sentences hold none of it, and are passed on at once."""


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
    if not _HINT.search(text):
        return
    lowered = text.lower()
    if len(lowered) != len(text):  # one letter becomes two in lower case
        lowered = text.replace("İ", "I").lower()
    yield from token_spans(text)
    held = _STRINGS.held_by(lowered)
    yield from context_spans(text, held)
    if not _NAMES.isdisjoint(held):
        yield from named_spans(text, lowered)
        yield from assigned_spans(text)
        yield from option_spans(text)
        yield from prose_spans(text, lowered)
        yield from table_spans(text, lowered)
