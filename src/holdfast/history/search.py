"""Hits put together by conversation, each with its best line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from holdfast.history.model import Conversation, Hit
from holdfast.reasoning.fulltext import Term, fold
from holdfast.text import one_line

LINE = 200
AROUND = 60
"""Characters shown before the first word that was found."""


def by_conversation(hits: Iterable[Hit], terms: Sequence[Term], limit: int) -> tuple[Conversation, ...]:
    """The first conversations in the order of the hits, each with its best line and how many more it has."""
    best: dict[str, Hit] = {}
    count: dict[str, int] = {}
    for hit in hits:
        best.setdefault(hit.session_id, hit)
        count[hit.session_id] = count.get(hit.session_id, 0) + 1
    return tuple(
        Conversation(hit, line_with(hit.content, terms), count[hit.session_id] - 1)
        for hit in list(best.values())[:limit]
    )


def line_with(text: str, terms: Sequence[Term]) -> str:
    """The line that holds most of the terms, shortened around the first of them."""
    patterns = [re.compile(term.pattern) for term in terms]
    line = max(text.splitlines() or [""], key=lambda one: sum(bool(pattern.search(fold(one))) for pattern in patterns))
    folded = fold(line)
    places = [found.start() for pattern in patterns if (found := pattern.search(folded))]
    start = max(0, min(places, default=0) - AROUND) if len(line) > LINE else 0
    return ("…" if start else "") + one_line(line[start:], LINE)


def holds(text: str, terms: Sequence[Term]) -> bool:
    """Whether a text holds all the terms."""
    folded = " ".join(fold(text).split())
    return all(term.text in folded for term in terms)
