"""The rules of the bridge: priorities, what is a duplicate, what is a restart. Pure, no I/O."""

from __future__ import annotations

import hashlib
from enum import IntEnum, StrEnum

from holdfast.errors import BadInput
from holdfast.lazy_dataclass import dataclass

MAX_TEXT = 100_000
"""Characters of a message."""
MAX_PENDING = 1_000
"""Messages that may wait for one target."""
KEPT_FOR_STOP = 100
"""Further places, reserved for STOP."""
MAX_ATTEMPTS = 5
"""How often a message is handed out before it is a dead letter."""
SAME_TEXT_MS = 30_000
"""How long the same text is a duplicate, while the first still waits."""
ADOPTED = "archive"
"""The source of a message that came with an archive and was not released."""
FROM_CHAT = "telegram"
"""The source of a message that its owner wrote in the target's chat, which shows each status."""
TTL_MS = 7 * 24 * 3_600_000
LEASE_MS = 10 * 60_000
"""The lease of a message taken by a call."""
MAX_ID = 128
"""Characters of a message's id."""
MAX_TASK_FIELD = 2_000
"""Characters of each field of a task."""
MAX_PENDING_IDS = 100
"""Ids of messages that a task may list."""


class Priority(IntEnum):
    NORMAL = 0
    URGENT = 1
    STOP = 2

    @property
    def word(self) -> str:
        return _WORDS[self]


_WORDS = tuple(priority.name.lower() for priority in Priority)


class Status(StrEnum):
    """The status of a message."""

    PENDING = "pending"
    LEASED = "leased"
    DONE = "done"
    FAILED = "failed"
    """Its taker could not do it."""
    DEAD = "dead"
    """Handed out too often without being finished."""
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    """Taken back before an agent had it."""
    HELD = "held"
    """Came with an archive, and is delivered to nobody before the owner releases it."""

    @property
    def over(self) -> bool:
        return self not in (Status.PENDING, Status.LEASED, Status.HELD)


class Outcome(StrEnum):
    """How the taker of a message ends it."""

    DONE = "done"
    FAILED = "failed"
    LATER = "later"
    """It goes back to its place in the queue."""


class UpdateKind(StrEnum):
    REPLY = "reply"
    SESSION_RESTART = "session_restart"
    TASK = "task"
    DEAD_LETTER = "dead_letter"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    MESSAGE = "message"
    """What was sent to the target, for its chat."""
    PROGRESS = "progress"
    """The status of a message from the chat, for that chat: its content is a `Status`."""
    IDLE = "idle"
    """The agent is idle at its terminal while messages wait, and its owner is asked what to do."""
    ADOPTED = "adopted"
    """An update from elsewhere that came with an archive; not sent to any chat."""


class IdleDecision(StrEnum):
    """What happens to messages for an agent that is idle at its terminal."""

    FORK = "fork"
    """A copy of its conversation answers them."""
    WAIT = "wait"
    OVER = "over"
    """The agent is at work again."""


class Refusal(StrEnum):
    DUPLICATE = "duplicate"
    FULL = "full"


@dataclass(slots=True)
class Message:
    """A message in a target's queue. Not frozen, because a frozen one takes four times as long to create."""

    row_id: int
    id: str
    target: str
    seq: int
    text: str
    sender: str
    priority: int
    reply_to: str | None
    status: str
    attempts: int
    lease_by: str | None
    lease_until: int | None
    way: str | None
    """How it was handed out: by a call, with a hook, or to a managed agent."""
    outcome: str | None
    expires_at: int
    source: str


@dataclass(frozen=True, slots=True)
class Update:
    seq: int
    target: str
    kind: str
    message_id: str | None
    content: str
    created_at: int
    outcome: str | None = None
    """For a reply: how its message ended."""
    restart: Restart | None = None
    archive: str | None = None
    """For an adopted update: where it came from."""
    buttons: tuple[tuple[str, str], ...] = ()
    """The label and the action of each button that a chat shows below it."""
    question: str | None = None
    """The text of its message, if requested."""


@dataclass(frozen=True, slots=True)
class Idle:
    """The question that was asked about a session that is idle at its terminal."""

    session_id: str
    question: str
    decision: str | None


@dataclass(frozen=True, slots=True)
class Work:
    """What an agent is working on."""

    current_task: str
    session_id: str | None = None
    current_task_id: str | None = None
    last_completed_step: str | None = None
    pending_messages: tuple[str, ...] = ()
    updated_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(Work):
    """What a target's agent is working on."""

    target: str
    decision: str | None = None
    """The owner's decision after a restart: resume or fresh; None until given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectTask(Work):
    """What an agent is working on in a project without a target."""

    root: str
    owner: str
    """The identity of the caller that saved it."""


@dataclass(frozen=True, slots=True)
class OpenTask:
    task: ProjectTask
    at_work: bool
    """Whether the agent that saved it is connected now."""


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What an agent reports with save_task: its task, or that it is finished."""

    current_task: str | None
    current_task_id: str | None = None
    last_completed_step: str | None = None
    pending_messages: tuple[str, ...] = ()
    done: bool = False

    def work(self, session_id: str | None) -> Work:
        task, step = self.current_task or "", self.last_completed_step
        return Work(task, session_id, self.current_task_id, step, self.pending_messages)

    def check(self) -> None:
        if self.current_task is None and not self.done:
            raise BadInput("current_task", "is required, unless done is true")
        for field in ("current_task", "current_task_id", "last_completed_step"):
            value = getattr(self, field)
            if value is not None and (not 0 < len(value) <= MAX_TASK_FIELD or "\0" in value):
                raise BadInput(field, f"must be 1 to {MAX_TASK_FIELD} characters without NUL bytes")
        if len(self.pending_messages) > MAX_PENDING_IDS or any(len(one) > MAX_ID for one in self.pending_messages):
            raise BadInput("pending_messages", f"must be at most {MAX_PENDING_IDS} ids")


@dataclass(frozen=True, slots=True)
class Restart:
    """A new incarnation of an agent replaced another."""

    target: str
    old: str
    new: str

    @property
    def content(self) -> str:
        """The seed's wording."""
        return f"⚠️ Agent session restarted. Previous context lost. Session: {self.old} → {self.new}"


def is_same_work(one: Work, other: Work) -> bool:
    """Whether two tasks are the same work, equally far along."""
    return (one.current_task, one.current_task_id, one.last_completed_step, one.pending_messages) == (
        other.current_task,
        other.current_task_id,
        other.last_completed_step,
        other.pending_messages,
    )


def decision_text(decision: str, current_task: str) -> str:
    """The message that tells an agent what the owner decided after a restart."""
    if decision == "resume":
        return f"The owner decided: resume the task you were on before the restart: {current_task}"
    return f"The owner decided: start fresh. Leave the task from before the restart: {current_task}"


def check_text(text: str) -> None:
    """Refuse a text that cannot be a message."""
    if not text.strip() or len(text) > MAX_TEXT or "\0" in text:
        raise BadInput("message", f"must be 1 to {MAX_TEXT} characters without NUL bytes")


def fingerprint(text: str) -> str:
    """Hash a text regardless of its whitespace."""
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def restart(target: str, known: str | None, seen: str, *, known_is_alive: bool = False) -> Restart | None:
    """Whether an agent seen now replaced the known one.

    The first one is no restart, nor is the same one after a resume or compaction, nor a second beside a live one.
    """
    if known is None or known == seen or known_is_alive:
        return None
    return Restart(target, known, seen)
