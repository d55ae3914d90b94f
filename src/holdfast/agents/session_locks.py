"""One writer for each agent session on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from holdfast.agents.errors import SessionInUse
from holdfast.errors import BadInput
from holdfast.process import guard_process


def canonical_session_id(session_id: str) -> str:
    """Return the id as agents write it; an id that is no UUID never becomes a file name."""
    import uuid  # late: the daemon starts without it

    try:
        return str(uuid.UUID(session_id))
    except ValueError:
        raise BadInput("session_id", f"{session_id!r} is not a UUID") from None


def is_canonical_session_id(name: str) -> bool:
    """Return whether a name is a session's id as agents write it."""
    try:
        return canonical_session_id(name) == name
    except BadInput:
        return False


class SessionLocks:
    """One writer for each session on this machine: the guard holds its lock until all of the agent is gone."""

    def __init__(self, folder: Path, patience: float) -> None:
        self._folder = folder
        self._patience = patience

    def path(self, session_id: str) -> Path:
        """Return the file whose lock stands for the session."""
        return self._folder / f"{session_id}.lock"

    def environment(self, session_id: str) -> dict[str, str]:
        """Return the environment variables that a guard needs to hold the session."""
        return {guard_process.LOCK_VARIABLE: str(self.path(session_id))}

    @asynccontextmanager
    async def held(self, session_id: str, *, patience: float | None = None) -> AsyncIterator[None]:
        """Lock the session briefly; the agent of a daemon that was killed gets time to end."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.path(session_id)
        seconds = self._patience if patience is None else patience
        descriptor = await asyncio.to_thread(guard_process.hold_lock, path, seconds)
        if descriptor is None:
            raise SessionInUse(
                f"Session {session_id} is open in another process.", recovery="Wait until that one is done."
            )
        try:
            yield
        finally:
            guard_process.release_lock(path, descriptor)
