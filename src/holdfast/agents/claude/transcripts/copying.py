"""Copies transcripts of people's own sessions to a store that several machines share, and back to a file."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from holdfast.agents.claude.transcripts import copies, transcript_copy
from holdfast.agents.claude.transcripts.files import TranscriptFiles
from holdfast.agents.claude.transcripts.store import TranscriptStore
from holdfast.agents.transcript_copies import MAIN, Parts, Relation, TranscriptTooLarge
from holdfast.store import Store

MAX_TRANSCRIPT_BYTES = 64 * 1024 * 1024
"""A longer transcript is not copied to the store: its lines are merged in memory."""


async def to_store(store: Store, session_id: str, transcript: Path) -> None:
    """Bring the store's copy of a session level with its file; lines that only the store has stay."""
    stored, files = TranscriptStore(store), TranscriptFiles(transcript.parents[2])
    if not await asyncio.to_thread(_is_short, files, session_id):
        return
    # A branch that its user left stays apart: see `one_branch`.
    parts = await transcript_copy.merged(stored, files, session_id, in_one_branch=False)
    await transcript_copy.store(stored, transcript.parent.name, session_id, parts)


async def from_store(store: Store, session_id: str, folder: Path) -> bool:
    """Write the store's copy into a project's folder if it continues the file there; False if it does not."""
    there = await TranscriptStore(store).everywhere(session_id)
    if not there.get(MAIN):
        return False
    theirs: Parts = {subpath: partial(copies.lines_from, entries) for subpath, entries in there.items()}
    try:
        return await asyncio.to_thread(_continue, TranscriptFiles(folder.parents[1]), folder.name, session_id, theirs)
    except TranscriptTooLarge:
        return False


def _is_short(files: TranscriptFiles, session_id: str) -> bool:
    paths = (path for same in files.paths(session_id).values() for path in same)
    return all(path.stat().st_size <= MAX_TRANSCRIPT_BYTES for path in paths)


def _continue(files: TranscriptFiles, folder: str, session_id: str, theirs: Parts) -> bool:
    comparison = copies.compare(files, session_id, theirs)
    if comparison in (Relation.NEW, Relation.AHEAD):
        copies.put(files, folder, session_id, theirs)
    return comparison is not Relation.FORKED
