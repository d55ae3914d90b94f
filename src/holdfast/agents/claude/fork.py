"""A copy of a conversation as it is now, made as the SDK makes one: nothing is started, and no model is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from claude_agent_sdk import fork_session_via_store
from claude_agent_sdk.types import SessionStore

from holdfast.agents.claude.transcripts.queries import Entry


async def forked(entries: list[Entry], project: Path, session_id: str, title: str) -> tuple[str, list[Entry]]:
    """Return the id and the entries of a copy; ValueError if there is nothing to copy."""
    original = _Entries(entries)
    made = await fork_session_via_store(cast(SessionStore, original), session_id, str(project), title=title)
    return made.session_id, original.copied


class _Entries:
    """A session store with one session, which keeps the copy that is made of it."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries
        self.copied: list[Entry] = []

    async def load(self, _key: Any) -> list[Entry]:
        return self._entries

    async def append(self, _key: Any, entries: list[Any]) -> None:
        self.copied += entries
