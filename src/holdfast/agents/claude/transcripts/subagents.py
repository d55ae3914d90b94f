"""A session's subagents: each has its own transcript, beside the session's."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from holdfast.agents.claude.transcripts.neutral import entry_of
from holdfast.agents.claude.transcripts.reader import WINDOW, read_new
from holdfast.agents.transcript_entries import Entry
from holdfast.agents.transcript_position import Position

FOLDER = "subagents"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}\.jsonl")


def read_subagents(
    transcript: Path, since: Mapping[str, str], fold: Callable[[Entry], None], most: int
) -> dict[str, str]:
    """Hand what the latest subagents did since then to `fold`, as many as `most`; returns how far each was read."""
    positions: dict[str, str] = {}
    budget = WINDOW
    for path, size in _beside(transcript, most):
        known = since.get(path.name)
        before = Position.parse(known or "")
        if size != before.offset and budget > 0:
            budget -= size - before.offset
            # A transcript that was replaced is folded once more: its files are then counted twice, none is lost.
            read = read_new(path, before, lambda line: fold(entry_of(line, is_side=True)), restart=_nothing)
            known = known if read is None else str(read.position)
        if known is not None:
            positions[path.name] = known
    return positions


def _beside(transcript: Path, most: int) -> list[tuple[Path, int]]:
    """Return the transcripts of a session's subagents with their sizes, the oldest first."""
    transcripts: list[tuple[int, str, int]] = []
    try:
        with os.scandir(transcript.with_suffix("") / FOLDER) as folder:
            for one in folder:
                if _NAME.fullmatch(one.name) and one.is_file(follow_symlinks=False):
                    about = one.stat(follow_symlinks=False)
                    transcripts.append((about.st_mtime_ns, one.path, about.st_size))
    except OSError:
        return []  # most sessions have none
    return [(Path(path), size) for _, path, size in sorted(transcripts)[-most:]]


def _nothing() -> None:
    """Reset nothing: a subagent's work is in its session's ledger, which restarts only with the session's file."""
