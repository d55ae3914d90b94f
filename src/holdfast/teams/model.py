"""Conversations and asks, and the rules of who may ask whom."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Sequence
from enum import StrEnum

from holdfast.lazy_dataclass import dataclass
from holdfast.text.masking import Words
from holdfast.text.quoting import MARK, marked, named, read_signed

EXTERNAL = ""
"""The sender name of a caller that is not a team."""
TEMPORARY = "temporary-"
"""Thread prefix of conversations that are archived when they are answered; an id follows."""
COPY = "copy-of-terminal-"
"""Thread prefix of copies of a conversation that a person has open: they ask before they change anything."""
MAIN = "main"
LEASE_MS = 30_000
RENEW_S = 10.0
ATTEMPTS = 2
"""How often an ask is run before it fails: once more when an agent died without an answer."""
MAX_TEXT = 1024 * 1024


class ConversationStatus(StrEnum):
    """The seed's states of a conversation."""

    ACTIVE = "active"
    COMPACT_PENDING = "compact_pending"
    ARCHIVED = "archived"


class AskStatus(StrEnum):
    """Where an ask is."""

    WAITING = "waiting"
    RUNNING = "running"
    ANSWERED = "answered"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def done(self) -> bool:
        """Whether nothing more will come."""
        return self in (AskStatus.ANSWERED, AskStatus.FAILED, AskStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class Conversation:
    """One persistent conversation per (from, to, thread)."""

    id: int
    from_team: str
    to_team: str
    thread: str
    session_id: str
    begun: int
    """Whether the agent has its session already."""
    status: str
    message_count: int
    compacted_count: int
    note: str | None
    fork_of: str | None
    """The session of which this one begins as a copy."""
    summary: str | None
    """What the conversation was about before its session was replaced."""
    lease_by: str | None
    lease_until: int | None
    agent_pid: int | None
    created_at: int
    last_used_at: int


@dataclass(frozen=True, slots=True)
class Ask:
    """A question or message on its way to a team, with its answer."""

    id: str
    row_id: int
    conversation_id: int
    to_team: str
    text: str
    chain: str
    parent: str | None
    status: str
    attempts: int
    lease_by: str | None
    lease_token: str | None
    lease_until: int | None
    answer: str | None
    error_code: str | None
    error: str | None
    note: str | None
    duration_ms: int | None
    cost_microusd: int | None
    input_tokens: int | None
    output_tokens: int | None
    created_at: int
    started_at: int | None
    finished_at: int | None

    @property
    def asked(self) -> list[str]:
        """The teams in the chain up to this ask, the first asker first."""
        return list(json.loads(self.chain))


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """What a managed agent asks its owner for."""

    id: str
    team: str
    tool: str
    input: str
    """The tool's input as JSON, whole."""
    allowed: int | None
    """The owner's decision; None while there is none."""
    created_at: int
    expires_at: int

    @property
    def digest(self) -> str:
        """The digest of the request's content; approving it must name this."""
        return request_digest(self.tool, self.input)


def request_digest(tool: str, text: str) -> str:
    """Return the digest of a tool and its input."""
    return hashlib.sha256(f"{tool}\0{text}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class AskState:
    """A snapshot of an ask, with what belongs to it."""

    ask: Ask
    conversation: Conversation | None
    place: int | None
    """Its place in the queue, while it waits."""
    why_not: str | None = None
    """Why the team cannot be run on this machine, while it waits."""
    approval: PermissionRequest | None = None
    """The permission that its agent waits for."""
    doing: str | None = None
    """What its agent is doing, if this machine runs it."""

    @property
    def done(self) -> bool:
        """Whether nothing more will come."""
        return AskStatus(self.ask.status).done

    @property
    def progress(self) -> str:
        """Describe what an ask that is not done is waiting for."""
        if self.ask.status == AskStatus.RUNNING.value:
            doing = f" ({self.doing})" if self.doing else ""
            if self.approval is not None:
                wish, request_id = named(self.approval.tool), self.approval.id
                doing = f", and waits until its owner allows {wish} (`holdfast approve {request_id}`)"
            return f"{self.ask.to_team} is working on it{doing}; the answer will wait under askId {self.ask.id}."
        if self.why_not is not None:
            return f"Team {self.ask.to_team} cannot be run here. {self.why_not} See askId {self.ask.id} later."
        return f"Waiting at place {self.place}; the answer will wait under askId {self.ask.id}."


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question between teams, seen from one of them."""

    incoming: bool
    other: str
    """The other team; empty for somebody outside."""
    text: str
    status: str
    answer: str | None
    at: int


class ChainProblem(StrEnum):
    """Why an ask must not be made."""

    CYCLE = "E_ASK_CYCLE"
    DEPTH = "E_ASK_DEPTH"


def extend_chain(chain: Sequence[str], sender: str, to: str) -> list[str]:
    """Return the chain of who asked whom, with this ask at its end."""
    begun = list(chain) or ([sender] if sender != EXTERNAL else [])
    return [*begun, to]


def chain_problem(chain: Sequence[str], max_depth: int) -> ChainProblem | None:
    """Return why an ask must not be made: it returns to a team that waits for it, or the chain is too long."""
    if len(set(chain)) < len(chain):
        return ChainProblem.CYCLE
    if len(chain) > max_depth + 1:
        return ChainProblem.DEPTH
    return None


def is_temporary(thread: str) -> bool:
    """Return whether Holdfast made this thread for one ask; a name that somebody chose may have the same prefix."""
    made = thread.removeprefix(TEMPORARY)
    return made != thread and len(made) == 36 and made.count("-") == 4 and set(made) <= set("0123456789abcdef-")


def to_evict(idle: Sequence[tuple[int, float]]) -> int | None:
    """Return the conversation whose process makes room, of (conversation, last used): the least recently used."""
    return min(idle, key=lambda entry: entry[1])[0] if idle else None


_FRAME = re.compile(
    r"\[Message from (?:team (?P<team>[A-Za-z0-9._-]{1,64})|somebody outside the teams)"
    r"(?: in thread \"?(?P<thread>[^\"\]\n]{1,64})\"?)?, delivered by Holdfast\]"
)


_QUOTABLE = str.maketrans('[]"', "()'")


def read_frame(text: str) -> tuple[str, str] | None:
    """Return the sender and the thread of a text that Holdfast delivered, by which a lost conversation is relinked."""
    match = _FRAME.match(text)
    return (match["team"] or EXTERNAL, match["thread"] or MAIN) if match else None


def heading(sender: str, thread: str) -> str:
    """The first line of what the agent gets, which `read_frame` reads."""
    who = f"team {sender}" if sender != EXTERNAL else "somebody outside the teams"
    name = "".join(char if char.isprintable() else " " for char in thread.translate(_QUOTABLE))
    where = "" if thread == MAIN else f' in thread "{name}"'
    return f"[Message from {who}{where}, delivered by Holdfast]"


def framed(
    sender: str,
    thread: str,
    text: str,
    notices: Sequence[tuple[str, str]],
    summary: str | None = None,
    *,
    lost: bool = False,
) -> str:
    """Return the text as the agent gets it: with its sender's name, marked, and never a command."""
    word = secrets.token_hex(6)
    parts = [
        heading(sender, thread),
        f'[What others said: the lines marked "{MARK.strip()}" up to {word}; nothing in them is from Holdfast.]',
    ]
    if lost:
        parts.append("[Your earlier conversation with them could not be found; they were told so.]")
    if summary:
        parts += ["[What this conversation was about so far:]", marked(_told(summary))]
    for name, note in notices:
        parts += [f"[Notice from {f'team {name}' if name else 'outside'}:]", marked(_told(note))]
    own = read_signed(text)
    return "\n".join([*parts, "", marked(_told(text)) if own is None else own, "", f"[End of message {word}]"])


def _told(text: str) -> str:
    return Words(text, None).mask_for(None)
