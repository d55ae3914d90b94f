"""Copies of transcripts as handoff sees them, whichever agent wrote them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from holdfast.agents.errors import AgentError
from holdfast.store import Store

MAX_LINE = 16 * 1024 * 1024
"""Bytes of a line of a transcript that is copied."""
MAIN = ""
"""The part that is the conversation itself; its subagents have others."""

Parts = Mapping[str, Callable[[], Iterable[bytes]]]
"""A conversation from elsewhere: the lines of each part, read again at each call."""


class TranscriptTooLarge(AgentError):
    """A transcript has more or longer lines than a copy of one may have."""


class Relation(StrEnum):
    """How a transcript from elsewhere relates to the one here."""

    NEW = "new"
    """There is none here."""
    AHEAD = "ahead"
    """It continues the one here."""
    KNOWN = "known"
    """The one here is as long or longer."""
    FORKED = "forked"
    """Both went on differently."""


class TranscriptCopies(Protocol):
    """Copies one project's transcripts out, and puts copies from elsewhere where the agent looks for them.

    What cannot be read or written raises OSError, ValueError, TypeError or TranscriptTooLarge.
    """

    async def sessions(self, store: Store) -> list[str]:
        """Return the ids of the project's sessions, on disk and in the store."""
        ...

    async def copy(self, store: Store, session_id: str, add: Callable[[str, Iterable[bytes]], None]) -> None:
        """Hand the lines of each part to `add`; what cannot be read raises before the first part."""
        ...

    def has_lines(self, parts: Parts) -> bool:
        """Return whether every part can be read, and the conversation itself has a line."""
        ...

    def compare(self, session_id: str, parts: Parts) -> Relation:
        """Compare a conversation from elsewhere with the one here."""
        ...

    def put(self, session_id: str, parts: Parts) -> None:
        """Make a conversation from elsewhere the one in the project; lines that only the file here has stay."""
        ...

    def file(self, session_id: str) -> Path:
        """Return where the agent looks for a conversation of the project."""
        ...
