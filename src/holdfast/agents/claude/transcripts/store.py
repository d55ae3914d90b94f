"""Transcripts in the store: what the agent SDK calls a session store, on either engine.

Rows keep the project key they came with, as the SDK's contract asks. A conversation that goes on at another path is
found by its id alone and then moved to the new key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.agents.claude.transcripts import queries
from holdfast.agents.claude.transcripts.queries import Entry
from holdfast.agents.claude.transcripts.shareable import shareable
from holdfast.store import Store


class TranscriptStore:
    """Every transcript copy, by project key, session id and subpath."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def append(self, key: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> None:
        """Add lines; a line with a uuid that is there already is not added again."""
        lines = await self.shared(entries)
        await self._store.write(lambda tx: queries.insert(tx, key, lines))

    async def shared(self, entries: Sequence[Mapping[str, Any]]) -> list[Entry]:
        """Take out secrets where other machines read the store; SQLite is on the same disk as the agent's own file."""
        if self._store.engine != "postgres":
            return [dict(entry) for entry in entries]
        return await asyncio.to_thread(shareable, entries)

    async def load(self, key: Mapping[str, Any]) -> list[Entry] | None:
        """Return the lines in order, or None when there are none."""
        return await self._store.read(lambda tx: queries.lines(tx, key)) or None

    async def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        """Return the sessions of a project with the time of their last line."""
        return await self._store.read(lambda tx: queries.sessions(tx, project_key))

    async def known(self, session_id: str) -> bool:
        """Return whether there is a line of this session, under any project."""
        return await self._store.read(lambda tx: queries.is_known(tx, session_id))

    async def everywhere(self, session_id: str) -> dict[str, list[Entry]]:
        """Return the lines of a session by subpath, whichever projects they came from."""
        return await self._store.read(lambda tx: queries.everywhere(tx, session_id))

    async def put(self, key: Mapping[str, Any], entries: Sequence[Entry]) -> None:
        """Make these the lines of a session's subpath, under this project alone."""
        entries = await self.shared(entries)
        wanted = await asyncio.to_thread(lambda: [queries.written(entry) for entry in entries])
        await self._store.write(lambda tx: queries.put(tx, key, entries, wanted))

    async def forget(self, session_id: str) -> None:
        """Delete a session, under whatever project."""
        await self._store.write(lambda tx: queries.forget(tx, session_id))
