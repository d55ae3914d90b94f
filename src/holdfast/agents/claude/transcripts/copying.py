"""Copies transcripts of people's own sessions to a store that several machines share, and back to a file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.agents.claude.transcripts.files import TranscriptFiles
from holdfast.agents.claude.transcripts.merge import Line, lines_of, merge
from holdfast.agents.claude.transcripts.queries import MAIN
from holdfast.agents.claude.transcripts.store import TranscriptStore
from holdfast.store import Store
from holdfast.times import milliseconds

MAX_TRANSCRIPT_BYTES = 64 * 1024 * 1024
"""A longer transcript is not copied: its lines are merged in memory."""


async def to_store(store: Store, session_id: str, transcript: Path) -> None:
    """Bring the store's copy of a session level with its file; lines that only the store has stay."""
    stored, files = TranscriptStore(store), TranscriptFiles(transcript.parents[2])
    if not await asyncio.to_thread(_is_short, files, session_id):
        return
    here = await asyncio.to_thread(files.read, session_id)
    there = await stored.everywhere(session_id)
    for subpath in sorted(there.keys() | here.keys()):
        lines = await asyncio.to_thread(lambda name: merge(lines_of(there.get(name, [])), here.get(name, [])), subpath)
        key = {"project_key": transcript.parent.name, "session_id": session_id, "subpath": subpath}
        await stored.put(key, [line.entry for line in lines if line.is_mirrored and line.entry is not None])


async def from_store(store: Store, session_id: str, folder: Path) -> bool:
    """Write the store's copy into a project's folder if it goes on from the file there; False if it cannot."""
    files = TranscriptFiles(folder.parents[1])
    if not await asyncio.to_thread(_is_short, files, session_id):
        return False
    there = await TranscriptStore(store).everywhere(session_id)
    if not there.get(MAIN):
        return False
    theirs = {subpath: lines_of(entries) for subpath, entries in there.items()}
    return await asyncio.to_thread(_write, files, folder.name, session_id, theirs)


def _is_short(files: TranscriptFiles, session_id: str) -> bool:
    paths = (path for same in files.paths(session_id).values() for path in same)
    return all(path.stat().st_size <= MAX_TRANSCRIPT_BYTES for path in paths)


def _write(files: TranscriptFiles, folder: str, session_id: str, theirs: Mapping[str, Sequence[Line]]) -> bool:
    ours = files.read(session_id)
    there, here = _identified(theirs[MAIN]), _identified(ours.get(MAIN, []))
    if here[: len(there)] == there and ours.get(MAIN):
        return True  # the file is as long or longer
    if there[: len(here)] != here:
        return False  # both went on differently
    # The conversation itself comes last: without it, what a power cut left of its subagents counts for nothing.
    for subpath in sorted(theirs.keys() | ours.keys(), key=lambda one: (one == MAIN, one)):
        files.write(folder, session_id, subpath, merge(theirs.get(subpath, []), ours.get(subpath, [])))
    last = max(map(_time, theirs[MAIN]))
    if last > 0:  # Claude Code goes by the time of the file when it looks for the latest conversation
        os.utime(files.main_file(folder, session_id), (last / 1000, last / 1000))
    return True


def _identified(lines: Sequence[Line]) -> list[str]:
    """Return the keys of the lines with an id; the others are notes."""
    return [line.key for line in lines if line.entry and "uuid" in line.entry]


def _time(line: Line) -> int:
    try:
        return milliseconds(line.timestamp)
    except ValueError:
        return 0
