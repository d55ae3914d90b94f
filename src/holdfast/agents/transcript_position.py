"""What ledgers store of a transcript: how far it was read, and what kind of call is still running.

Apart from the entries, which a daemon does without until it reads a transcript.
"""

from __future__ import annotations

from enum import StrEnum

from holdfast.lazy_dataclass import dataclass


class CallKind(StrEnum):
    """What a tool does. Ledgers store it, so a value keeps its meaning."""

    RUN = "run"
    """Runs a shell command."""
    OUTPUT = "output"
    """Shows what a command in the background printed."""
    READ = "read"
    CHANGE = "change"
    """Writes or edits a file."""
    PLAN = "plan"
    """Puts a plan to the user."""
    QUESTION = "question"
    """Puts questions to the user."""
    TODO = "todo"
    """Adds a todo; its result contains the todo's key."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Position:
    """How far a file was read, and a hash by which the file is recognized."""

    offset: int = 0
    mark: str = ""
    """The length of its marked beginning, a hash of that, and a hash of the bytes before the offset."""

    def begins_like(self, other: Position) -> bool:
        """Return whether both are of the same file, judged by its beginning."""
        return self.mark.split(".")[:2] == other.mark.split(".")[:2]

    def __str__(self) -> str:
        return f"{self.offset}/{self.mark}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """Return a position as it was written; anything else is the beginning."""
        offset, _, mark = text.partition("/")
        return cls(int(offset), mark) if offset.isdecimal() else cls()
