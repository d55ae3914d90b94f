"""Looking through transcripts without an import: slower each time, bounded, and nothing is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.history import files
from holdfast.history.finding import Hit, grouped, holds
from holdfast.reasoning.search import words_of
from holdfast.teams.agents.project_key import project_key

MOST_BYTES = 512 * 1024 * 1024
"""How much is read at most, the newest transcripts first."""
MOST_HITS = 500


def scan(
    query: str, config: Path, project: Path | None, limit: int, progress: Callable[[float, str], None]
) -> dict[str, Any]:
    """What `find` answers, read from the transcripts themselves."""
    words = words_of(query)
    found = files.found(config, project_key(project) if project else None)
    total = min(MOST_BYTES, sum(file.size for file in found))
    hits: list[Hit] = []
    read = looked_at = 0
    for file in found:
        if read + file.size > MOST_BYTES or len(hits) >= MOST_HITS:
            break
        progress(read / total if total else 1.0, file.path.name)
        hits += _hits(file, words, str(project) if project else None)
        read += file.size
        looked_at += 1
    progress(1.0, "done")
    return {
        "results": grouped(hits, words, limit, config),
        "files": looked_at,
        "left_out": len(found) - looked_at,
    }


def _hits(file: files.TranscriptFile, words: list[str], project: str | None) -> list[Hit]:
    told = [one for batch in files.batches(file.path, 0) for one in batch.passages if holds(one.content, words)]
    if not told:
        return []
    directory = project or files.directory_of(files.main_file(file), {})
    return [Hit(file.session_id, directory, one.role, one.content, one.at, str(file.path)) for one in reversed(told)]
