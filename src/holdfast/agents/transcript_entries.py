"""Entries of a transcript without any agent's field names: what was asked, said, called, answered, planned, ended."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from holdfast.agents.transcript_position import CallKind, Position
from holdfast.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Asked:
    """The user asked for something."""

    text: str


@dataclass(frozen=True, slots=True)
class Said:
    """The agent said something."""

    text: str
    ends_turn: bool


@dataclass(frozen=True, slots=True)
class Called:
    """The agent called a tool, which has not answered yet."""

    call_id: str
    tool: str
    """As the agent names it."""
    kind: CallKind
    command: str = ""
    path: str = ""
    replaced: tuple[str, str] | None = None
    """What an edit replaced, and by what."""
    text: str = ""
    """A plan, or the text of a todo."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that was not permitted."""

    by_user: bool
    said: str = ""
    """The user's own words."""
    reason: str = ""
    """What else the result says."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A tool answered."""

    call_id: str
    text: str
    failed: bool
    refused: Refused | None = None
    not_run: bool = False
    """Whether the tool was called wrongly or interrupted: nothing of the project failed."""
    created: bool = False
    """Whether the file that was written was not there before."""
    plan: str = ""
    """The plan as the user accepted it."""
    answers: tuple[tuple[str, str], ...] = ()
    """Questions, and what the user answered."""
    todo_key: str = ""


@dataclass(frozen=True, slots=True)
class TodoItem:
    """One line of a list of todos."""

    text: str
    status: str


@dataclass(frozen=True, slots=True)
class TodosWritten:
    """The whole list of todos was rewritten."""

    todos: tuple[TodoItem, ...]


@dataclass(frozen=True, slots=True)
class TodoChanged:
    """One todo was changed; empty fields stay unchanged."""

    key: str
    status: str = ""
    text: str = ""


class QueueChange(StrEnum):
    """What happened to the texts that the user typed while a turn was running."""

    ADDED = "added"
    REMOVED = "removed"
    EMPTIED = "emptied"
    TAKEN = "taken"
    """The agent got the first of them."""


@dataclass(frozen=True, slots=True)
class Queued:
    """The queue of what the user typed changed."""

    change: QueueChange
    text: str = ""
    """Empty if no user wrote it."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """The agent's context was compacted."""

    tokens: int | None = None
    """How many it held before, where the transcript tells."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The turn ended."""

    by_user: bool = False
    """Whether the user interrupted it, which no hook reports."""


Part = Asked | Said | Called | Answered | TodosWritten | TodoChanged | Queued | Compacted | Ended


@dataclass(frozen=True, slots=True)
class Entry:
    """The facts in one entry of a transcript, in order."""

    parts: tuple[Part, ...] = ()
    at: int | None = None
    """When it was written, in milliseconds."""
    is_side: bool = False
    """Whether a subagent wrote it: its actions count, its requests and replies do not."""
    cwd: str = ""
    branch: str = ""
    context: int | None = None
    """How many tokens the agent's context held then, where the transcript tells."""


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """An entry of the store's copy of a transcript."""

    place: int
    """Its place in the store, which later entries are above."""
    entry: Entry


@dataclass(frozen=True, slots=True)
class Spoken:
    """One thing that was said, or that a tool did, word for word, for searching."""

    role: str
    """user, assistant, tool (what was called), result or error (what it said)."""
    text: str
    at: int
    """When, in milliseconds; 0 if the transcript does not say."""


@dataclass(frozen=True, slots=True)
class Read:
    """The result of one reading."""

    position: Position
    anew: bool
    """The file was replaced or never read before: discard what was known about it."""


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """A file of one conversation: its own, or that of a subagent."""

    path: Path
    session_id: str
    size: int
    modified: float


@dataclass(frozen=True, slots=True)
class SpokenBatch:
    """The entries in the next part of a file."""

    spoken: tuple[Spoken, ...]
    end: int
    """Where the next part begins."""
    mark: str
