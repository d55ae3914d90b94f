"""Looking through transcripts without an import: slower each time, bounded, and nothing is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from holdfast.agents.registry import transcripts_of
from holdfast.agents.transcript_entries import TranscriptFile
from holdfast.history.model import Hit, Scanned
from holdfast.history.passages import batches
from holdfast.history.search import by_conversation, holds
from holdfast.reasoning.fulltext import Term, terms_of

MOST_BYTES = 512 * 1024 * 1024
"""How much is read at most, the newest transcripts first."""
MOST_HITS = 500


def scan(query: str, config: Path, project: Path | None, limit: int, progress: Callable[[float, str], None]) -> Scanned:
    """What `find` finds, read from the transcripts themselves."""
    terms = terms_of(query)
    transcripts = transcripts_of()
    found = transcripts.found(config, transcripts.folder_name(project) if project else None)
    total = min(MOST_BYTES, sum(file.size for file in found))
    hits: list[Hit] = []
    read = looked_at = 0
    for file in found:
        if read + file.size > MOST_BYTES or len(hits) >= MOST_HITS:
            break
        progress(read / total if total else 1.0, file.path.name)
        hits += _hits(file, terms, str(project) if project else None)
        read += file.size
        looked_at += 1
    progress(1.0, "done")
    return Scanned(by_conversation(hits, terms, limit), looked_at, len(found) - looked_at)


def _hits(file: TranscriptFile, terms: list[Term], project: str | None) -> list[Hit]:
    transcripts = transcripts_of()
    told = [one for batch in batches(transcripts, file.path, 0) for one in batch.passages if holds(one.content, terms)]
    if not told:
        return []
    directory = project or transcripts.directory_of(file, {})
    return [Hit(file.session_id, directory, one.role, one.content, one.at, str(file.path)) for one in reversed(told)]
