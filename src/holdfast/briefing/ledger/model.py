"""What an agent did in one session: bounded facts, so that a ledger stays small whatever a transcript contains."""

from __future__ import annotations

import json
import re
from dataclasses import field, fields
from typing import Any, Self

from holdfast.lazy_dataclass import dataclass

MAX_LEDGER_BYTES = 60_000
"""Bytes of a ledger as it is stored."""
MAX_REQUEST = 1_500
"""Characters kept of the first and the last request."""
MAX_EARLIER = 300
"""Characters kept of a request between them."""
MAX_REQUESTS = 30
MAX_FILES = 200
MAX_PATH = 400
MAX_FAILED = 20
MAX_ERRORS = 40
MAX_SOURCES = 5
MAX_MENTIONED = 100
MAX_TODOS = 30
MAX_DECISIONS = 15
MAX_RULED_OUT = 15
MAX_COMMITS = 15
MAX_CALLS = 64
MAX_COMMAND = 4_000
"""Characters of a command that are read for what it runs."""
MAX_SUBAGENTS = 100
MAX_LINE = 300
MAX_WAITING = 10
MAX_PLAN = 1_500
MAX_WORDS = 800
MAX_ACTIVE = 150
ACTIVE_MS = 300_000
"""The length of an interval in which a session did something."""

SESSION_ID = re.compile(r"[A-Za-z0-9-]{1,128}")
"""Ids come from outside; no other text may name a file or a row."""


def is_session_id(text: str) -> bool:
    """Return whether a text can be a session's id."""
    return SESSION_ID.fullmatch(text) is not None


@dataclass(slots=True)
class Touched:
    """A file, and how often it was read or modified."""

    path: str
    times: int = 1
    at: int = 0
    """When it was last."""
    created: bool = False
    """Whether it did not exist before."""
    removed: bool = False


@dataclass(slots=True)
class Failure:
    """A command that failed."""

    command: str
    error: str
    """The class of the error, or the exit code."""
    line: str
    """What it said, on one line."""
    mended: bool = False
    """The same command succeeded later."""
    key: str = ""
    """What it ran, without options, by which a later success of the same is recognised."""


@dataclass(slots=True)
class ErrorClass:
    """An error that a command or a tool reported."""

    name: str
    sources: list[str] = field(default_factory=list)
    """What reported it and has not passed since."""


@dataclass(slots=True)
class Todo:
    """One thing on the agent's list."""

    text: str
    status: str
    key: str = ""
    """Its number, if the agent numbers them."""


@dataclass(slots=True)
class Decision:
    """A question that the user answered."""

    question: str
    answer: str


@dataclass(slots=True)
class Commit:
    """A commit that the agent made."""

    hash: str
    subject: str
    at: int = 0
    """When it was made, in milliseconds; 0 in a ledger of a version that did not store it."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that was done, on one line."""

    kind: str
    """asked, said, planned, read, changed, ran or used."""
    text: str
    """What was said, or the file, command or tool."""
    at: int


@dataclass(slots=True)
class GitStart:
    """The state of a worktree when a session began."""

    top: str
    """The worktree's directory, as the session spells it."""
    head: str | None
    """None before the first commit."""
    at: int
    """When it was looked at, in milliseconds."""
    moves: int = 0
    """How often HEAD had been moved."""
    dirty: list[str] = field(default_factory=list)
    """Hashes of the uncommitted files and their states."""


@dataclass(slots=True)
class Changed:
    """A file that git says was changed."""

    path: str
    removed: bool = False
    committed: bool = False
    """Whether all of it is committed."""


@dataclass(slots=True)
class GitView:
    """What git says was changed since a session began."""

    at: int
    """When it was looked at."""
    changed: list[Changed] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    """Files of the session that git knows nothing of: ignored ones, and those elsewhere."""
    alone: bool = False
    """Whether no other session was running in the worktree."""


@dataclass(slots=True)
class Call:
    """A tool call that was not answered yet."""

    id: str
    tool: str
    """As the agent names it."""
    kind: str = ""
    """What it does, a `CallKind`; empty in a ledger of a version that stored only the name."""
    about: str = ""
    """Its file or its command."""
    text: str = ""
    """A plan, the text of a todo."""
    shown: list[str] = field(default_factory=list)
    """Files that a command shows."""
    written: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    mentioned: list[str] = field(default_factory=list)
    """Paths given to a command that does more than show them."""
    keys: list[str] = field(default_factory=list)
    """What a command runs (runs.py), and what its exit status says."""
    shows: bool = False
    hides_exit: bool = False
    checks: bool = False
    finds: bool = False
    swap: str = ""
    """Hashes of the old and new text of an edit: an edit that swaps them undoes it."""
    side: bool = False
    """Whether it is a subagent's."""


@dataclass(slots=True)
class Ledger:
    """What one agent session did."""

    session_id: str
    cwd: str | None = None
    branch: str | None = None
    first_request: str | None = None
    requests: list[str] = field(default_factory=list)
    """The later ones, the latest last and whole, the others by their beginning."""
    turns: int = 0
    """How many requests there were."""
    waiting: list[str] = field(default_factory=list)
    """Input that the agent has not got yet, and after a crash never will. Empty texts are not requests."""
    read: list[Touched] = field(default_factory=list)
    """By last use, the latest last, like the lists below."""
    modified: list[Touched] = field(default_factory=list)
    mentioned: list[str] = field(default_factory=list)
    """Paths given to its commands; git may say that they changed."""
    failed: list[Failure] = field(default_factory=list)
    errors: list[ErrorClass] = field(default_factory=list)
    todos: list[Todo] = field(default_factory=list)
    plan: str | None = None
    decisions: list[Decision] = field(default_factory=list)
    ruled_out: list[str] = field(default_factory=list)
    """What the user refused, what a hook denied, what the agent took back."""
    commits: list[Commit] = field(default_factory=list)
    last_words: str | None = None
    started_at: int = 0
    last_at: int = 0
    active: list[int] = field(default_factory=list)
    """The intervals in which it did something, the latest last, numbered since the epoch."""
    compactions: int = 0
    unfinished: bool = False
    """Whether the last turn has no end: it is still running, or was cut off, for example by kill -9."""
    calls: list[Call] = field(default_factory=list)
    """Calls that were not answered; only while a turn is unfinished."""
    spoke: bool = False
    """Whether it has said something since the latest request."""
    latest: Action | None = None
    """The agent's latest call."""
    context: int | None = None
    """How many tokens its context held last; until the next reply after a compaction, how many it held before."""
    edits: list[str] = field(default_factory=list)
    """The latest edits as hashes and path, to recognise one that is taken back."""
    subagents: dict[str, str] = field(default_factory=dict)
    """How far the transcript of each subagent was read."""
    git_start: GitStart | None = None
    """Like the next, not from the transcript; None if there is no repository."""
    git_view: GitView | None = None

    @property
    def latest_request(self) -> str | None:
        """The user's latest request."""
        return self.requests[-1] if self.requests else self.first_request

    @property
    def is_empty(self) -> bool:
        """Whether nothing was asked and nothing done."""
        return not (self.first_request or self.read or self.modified or self.failed or self.todos)

    def to_json(self) -> str:
        """Serialize it; if it would be too large, the oldest entries of the longest lists are left out."""
        written = _json(self)
        while _size(written) > MAX_LEDGER_BYTES and any(getattr(self, name) for name in _LISTS):
            longest = max((getattr(self, name) for name in _LISTS), key=lambda parts: _size(_json(parts)))
            del longest[: max(1, len(longest) // 4)]
            written = _json(self)
        return written

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse a stored ledger; members that this version does not know are left out."""
        stored = json.loads(text)
        values = _known(cls, stored)
        for name, kind in _PARTS.items():
            names = _names(kind)  # a ledger has hundreds of parts
            parts = values.get(name, ())
            values[name] = [kind(**(part if part.keys() <= names else _known(kind, part))) for part in parts]
        if values.get("latest"):
            values["latest"] = Action(**_known(Action, values["latest"]))
        if values.get("git_start"):
            values["git_start"] = GitStart(**_known(GitStart, values["git_start"]))
        if values.get("git_view"):
            view = GitView(**_known(GitView, values["git_view"]))
            view.changed = [Changed(**_known(Changed, part)) for part in values["git_view"]["changed"]]
            values["git_view"] = view
        return cls(**values)


_PARTS: dict[str, type[Any]] = {
    "read": Touched,
    "modified": Touched,
    "failed": Failure,
    "errors": ErrorClass,
    "todos": Todo,
    "decisions": Decision,
    "commits": Commit,
    "calls": Call,
}
_NAMES: dict[type[Any], frozenset[str]] = {}
"""The members of each part, because a ledger has hundreds of parts."""
_LISTS = (*_PARTS, "mentioned", "requests", "waiting", "ruled_out", "edits")


def _known(kind: type[Any], stored: dict[str, Any]) -> dict[str, Any]:
    names = _names(kind)
    return stored if stored.keys() <= names else {name: stored[name] for name in stored.keys() & names}


def _names(kind: type[Any]) -> frozenset[str]:
    if kind not in _NAMES:
        _NAMES[kind] = frozenset(one.name for one in fields(kind))
    return _NAMES[kind]


def _json(value: Any) -> str:
    return json.dumps(value, default=vars, ensure_ascii=False, separators=(",", ":"))


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
