"""Transcripts of people's own sessions on a store that several machines share: the conversation itself goes on there.

A machine puts a session's lines into the store when the session is over; another one that is about to offer it writes
them where its agent looks for them. Of a file that is there already nothing is lost: the store's lines are taken only
where they go on from it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from holdfast.agents.claude.transcripts import copies
from holdfast.agents.claude.transcripts.files import TranscriptFiles
from holdfast.agents.claude.transcripts.store import TranscriptStore
from holdfast.agents.errors import SessionInUse
from holdfast.agents.session_locks import SessionLocks
from holdfast.agents.transcript_copies import MAIN, Relation, TranscriptTooLarge
from holdfast.store import Store

LOCK_SECONDS = 1.0
LARGEST = 64 * 1024 * 1024
"""Bytes of a transcript; a longer one stays where it is."""


class SharedTranscripts:
    """Puts transcripts into the store, and gets those of other machines out of it."""

    def __init__(self, store: Store, home: Path, *, gives: bool = True) -> None:
        self._store = TranscriptStore(store)
        self._gives = gives
        self._locks = SessionLocks(home / "locks", LOCK_SECONDS)
        self._shared: dict[str, tuple[int, int]] = {}
        """Size and time of each file as it was shared last; a daemon that starts shares them once more."""

    async def share(self, session_id: str, transcript: Path) -> None:
        """Bring the store's copy of a session that is over level with its file, unless this machine gives none."""
        if not self._gives:
            return
        state = await asyncio.to_thread(_state, transcript)
        if state is None or state[0] > LARGEST or self._shared.get(session_id) == state:
            return
        files = TranscriptFiles(transcript.parents[2])
        lines = await asyncio.to_thread(files.read, session_id)
        mirrored = await self._store.everywhere(session_id)
        both = await asyncio.to_thread(copies.together, mirrored, lines)
        for subpath, merged in both.items():
            key = {"project_key": transcript.parent.name, "session_id": session_id, "subpath": subpath}
            entries = [line.entry for line in merged if line.is_mirrored and line.entry is not None]
            await self._store.put(key, entries)
        self._shared[session_id] = state

    async def fetch(self, session_id: str, folder: Path) -> bool:
        """Write a session of another machine into the folder of this project; whether it can be resumed here now."""
        mirrored = await self._store.everywhere(session_id)
        if not mirrored.get(MAIN):
            return False
        theirs = {subpath: partial(copies.lines_from, entries) for subpath, entries in mirrored.items()}
        files = TranscriptFiles(folder.parents[1])
        try:
            async with self._locks.held(session_id):
                found = await asyncio.to_thread(copies.compare, files, session_id, theirs)
                if found in (Relation.NEW, Relation.AHEAD):
                    await asyncio.to_thread(copies.put, files, folder.name, session_id, theirs)
        except (SessionInUse, TranscriptTooLarge):
            return False
        return found is not Relation.FORKED


def _state(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
