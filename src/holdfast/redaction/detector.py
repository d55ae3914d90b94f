"""Finds secrets by all rules. Imported with the first text that may hold one. Pure, no I/O."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.redaction.chosen import chosen_spans
from holdfast.redaction.contexts import NEEDLES, context_spans
from holdfast.redaction.literals import Strings, shortest
from holdfast.redaction.tokens import Span, token_spans
from holdfast.redaction.values import NAME_WORDS
from holdfast.redaction.words import PROSE_BEGINNINGS

NAMES = frozenset(shortest({*NAME_WORDS, *PROSE_BEGINNINGS, "_pw", "pw=", "-pw", "pw:", "pw "} - {"pw"}))
"""A text without any of these, in lower case, names no secret."""
STRINGS = Strings([*NAMES, *NEEDLES])


def spans(text: str) -> Iterator[Span]:
    """Yield the secrets in a text; they may overlap."""
    lowered = text.lower()
    if len(lowered) != len(text):  # some letters become two in lower case
        lowered = text.replace("İ", "I").lower()
    yield from token_spans(text)
    yield from chosen_spans(text, lowered)
    held = STRINGS.held_by(lowered)
    yield from context_spans(text, held)
    if not NAMES.isdisjoint(held):
        from holdfast.redaction.names import name_spans  # imported late: compiling its expressions takes 15 ms

        yield from name_spans(text, lowered)
