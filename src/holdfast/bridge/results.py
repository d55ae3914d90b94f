"""Results of the bridge service. No hook needs them, so a daemon starts without importing this module."""

from __future__ import annotations

from holdfast.bridge.model import Message, Status, Task, Update
from holdfast.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Sent:
    """Whether a message was queued, under which id, or why not."""

    target: str
    id: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Followed:
    """A target whose updates somebody follows, and from where."""

    target: str
    since: str | None
    """A cursor or a time; None: the beginning."""


@dataclass(frozen=True, slots=True)
class Pulled:
    """Updates of a target, oldest first, and where the next pull begins."""

    updates: tuple[Update, ...]
    cursor: int


@dataclass(frozen=True, slots=True)
class TargetStatus:
    """A target's queue and agent. Fields that are None or 0 do not apply, or the caller may not see them."""

    target: str
    pending: int
    in_progress: int
    last_seen: int | None
    task: Task | None = None
    working_on: str | None = None
    """The text of the message in progress, for an agent that saved no task."""
    session_id: str | None = None
    dead_letters: int = 0
    held: int = 0


@dataclass(frozen=True, slots=True)
class Taken:
    """The message that a caller has now; None if there is none for it."""

    target: str
    message: Message | None
    waiting: int
    """How many more wait."""


@dataclass(frozen=True, slots=True)
class Finished:
    id: str
    status: Status
    waiting: int
    """How many wait now."""
    repeated: bool = False
    """Whether it had been ended in the same way before."""


@dataclass(frozen=True, slots=True)
class TaskSaved:
    """Where a task was saved: for a target or for a project; neither while recording is paused."""

    changed: bool = False
    target: str | None = None
    project: str | None = None

    @property
    def saved(self) -> bool:
        return self.target is not None or self.project is not None
