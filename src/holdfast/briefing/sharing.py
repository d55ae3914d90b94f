"""Transcripts of people's own sessions on a store that several machines share, so that a session can be resumed there.

A machine copies a session's transcript to the store when the session is over; another one that is about to offer the
session writes the copy where its agent looks for it. A file that is there already only grows.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from holdfast.agents.errors import SessionInUse
from holdfast.agents.registry import transcripts_of
from holdfast.agents.session_locks import SessionLocks
from holdfast.store import Store

LOCK_SECONDS = 1.0


class SharedTranscripts:
    """Copies transcripts to the store, and those of other machines from it."""

    def __init__(self, store: Store, home: Path, *, gives: bool = True) -> None:
        self._store = store
        self._gives = gives
        self._transcripts = transcripts_of()
        self._locks = SessionLocks(home / "locks", LOCK_SECONDS)
        self._shared: dict[str, tuple[int, int]] = {}
        """Size and time of each file when it was last shared; a daemon that starts shares them once more."""

    async def share(self, session_id: str, transcript: Path) -> None:
        """Bring the store's copy of a session that is over level with its file, unless this machine gives none."""
        if not self._gives:
            return
        state = await asyncio.to_thread(_state, transcript)
        if state is not None and self._shared.get(session_id) != state:
            await self._transcripts.copy_to_store(self._store, session_id, transcript)
            self._shared[session_id] = state

    async def fetch(self, session_id: str, folder: Path) -> bool:
        """Write a session of another machine into this project's folder; returns whether it can be resumed here."""
        try:
            async with self._locks.held(session_id):
                return await self._transcripts.copy_from_store(self._store, session_id, folder)
        except SessionInUse:
            return False


def _state(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
