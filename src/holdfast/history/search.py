"""Search results: hits put together by conversation, and a search of the transcripts themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from holdfast.agents.registry import transcripts_of
from holdfast.agents.transcript_entries import TranscriptFile
from holdfast.history.model import Conversation, Hit, Scanned
from holdfast.history.passages import batches
from holdfast.reasoning.fulltext import Term, fold, terms_of
from holdfast.text import one_line

LINE = 200
AROUND = 60
"""Characters shown before the first word that was found."""
MAX_BYTES = 512 * 1024 * 1024
"""How much a search without an import reads at most, the newest transcripts first."""
MAX_HITS = 500


def by_conversation(hits: Iterable[Hit], terms: Sequence[Term], limit: int) -> tuple[Conversation, ...]:
    """Group hits by conversation, in their order; each has its best line and the number of further hits."""
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
    """Return the line with most of the terms, shortened around the first of them."""
    patterns = [re.compile(term.pattern) for term in terms]
    line = max(text.splitlines() or [""], key=lambda one: sum(bool(pattern.search(fold(one))) for pattern in patterns))
    folded = fold(line)
    places = [match.start() for pattern in patterns if (match := pattern.search(folded))]
    start = max(0, min(places, default=0) - AROUND) if len(line) > LINE else 0
    return ("…" if start else "") + one_line(line[start:], LINE)


def holds(text: str, terms: Sequence[Term]) -> bool:
    """Return whether a text contains all the terms."""
    folded = " ".join(fold(text).split())
    return all(term.text in folded for term in terms)


def scan(query: str, config: Path, project: Path | None, limit: int, progress: Callable[[float, str], None]) -> Scanned:
    """Return what `find` finds, read from the transcripts themselves: slower, bounded, and nothing is kept."""
    terms = terms_of(query)
    transcripts = transcripts_of()
    files = transcripts.found(config, transcripts.folder_name(project) if project else None)
    total = min(MAX_BYTES, sum(file.size for file in files))
    hits: list[Hit] = []
    read = looked_at = 0
    for file in files:
        if read + file.size > MAX_BYTES or len(hits) >= MAX_HITS:
            break
        progress(read / total if total else 1.0, file.path.name)
        hits += _hits(file, terms, str(project) if project else None)
        read += file.size
        looked_at += 1
    progress(1.0, "done")
    return Scanned(by_conversation(hits, terms, limit), looked_at, len(files) - looked_at)


def _hits(file: TranscriptFile, terms: list[Term], project: str | None) -> list[Hit]:
    transcripts = transcripts_of()
    hits = [one for batch in batches(transcripts, file.path, 0) for one in batch.passages if holds(one.content, terms)]
    if not hits:
        return []
    directory = project or transcripts.directory_of(file, {})
    return [Hit(file.session_id, directory, one.role, one.content, one.at, str(file.path)) for one in reversed(hits)]
