"""Finds secrets by their names, in all ways of writing a name and its value. Pure, no I/O."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.redaction.apart import apart_spans
from holdfast.redaction.assignments import assigned_spans, option_spans
from holdfast.redaction.prose import prose_spans
from holdfast.redaction.tables import table_spans
from holdfast.redaction.tokens import Span


def name_spans(text: str, lowered: str) -> Iterator[Span]:
    """Yield secrets that the text names."""
    yield from apart_spans(text, lowered)
    yield from assigned_spans(text)
    yield from option_spans(text)
    yield from prose_spans(text, lowered)
    yield from table_spans(text, lowered)
