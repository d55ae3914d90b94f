"""What the services of reasoning return to tools and commands. Imported late: no hook waits for these."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.connections.model import Connection
from holdfast.identity.caller import Caller
from holdfast.lazy_dataclass import dataclass
from holdfast.reasoning.fulltext import Term
from holdfast.reasoning.model import Branch, Draft, Outcome, Piece, Session, Status, Thought
from holdfast.reasoning.recording import Recorded

Held = tuple[Session, Connection]
"""A session, and the other live caller that is in it."""


@dataclass(frozen=True, slots=True)
class RecordedThought:
    session: Session
    """As it was before the thought."""
    recorded: Recorded
    draft: Draft
    outcome: Outcome
    cross_root: bool
    from_root: str | None
    """The root of a recovered session, if it is not the caller's."""
    others: tuple[Held, ...]
    """Where the session is new: those of the project that other live callers are in."""
    previous: Session | None
    """Where the session is new: the one that the caller could have continued."""
    needs_id: bool
    """Whether the caller can come back to it only by its id."""


@dataclass(frozen=True, slots=True)
class StartedSession:
    """A new session, and who else is at work in the project."""

    session: Session
    others: tuple[Held, ...]
    needs_id: bool


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Data of a session besides its thoughts."""

    branches: tuple[Branch, ...]
    links: tuple[Session, ...]
    roots: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoadedContext:
    """A session that was brought back."""

    session: Session
    named: bool
    """Whether the caller named it."""
    loaded_at: int
    newest_first: tuple[Thought, ...]
    surroundings: Surroundings
    next_number: int
    cross_root: bool
    from_root: str | None
    just_begun: Session | None
    """A newer one that holds nothing but the caller's own first thought."""


@dataclass(frozen=True, slots=True)
class NotLoaded:
    """Why no session was brought back."""

    message: str
    recovery: str | None = None
    held: tuple[Held, ...] = ()
    attached: Session | None = None


@dataclass(frozen=True, slots=True)
class CallerState:
    """A caller's identity, and the session that it is in."""

    caller: Caller
    connection: Connection | None
    session: Session | None
    recording: bool


@dataclass(frozen=True, slots=True)
class BoundRoot:
    """The root that a caller was bound to, and the session it stays on."""

    uri: str
    session: Session | None


@dataclass(frozen=True, slots=True)
class SessionsPage:
    sessions: tuple[Session, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class FoundThought:
    session_id: str
    number: int
    title: str
    status: Status


@dataclass(frozen=True, slots=True)
class SearchPage:
    terms: tuple[Term, ...]
    everywhere: bool
    sessions: tuple[Session, ...]
    """Those whose title or tags match; on the first page only."""
    thoughts: tuple[tuple[FoundThought, Thought], ...]
    offset: int
    more: bool
    advice: str | None
    """Where nothing was found: which looser search finds something. Also that not all was searched."""


@dataclass(frozen=True, slots=True)
class FoundLately:
    """What a search of everything found, the newest first."""

    terms: tuple[Term, ...]
    sessions: tuple[Session, ...]
    """Those whose title or tags match."""
    thoughts: tuple[tuple[Session, Thought], ...]
    all_searched: bool
    """Whether all thoughts were searched; after a restore or a salvage many are not indexed yet."""


@dataclass(frozen=True, slots=True)
class OutlinePage:
    """Thoughts of a session, each with no more than how it begins."""

    session: Session
    thoughts: tuple[Thought, ...]
    surroundings: Surroundings
    last_number: int
    """Of the whole session."""


@dataclass(frozen=True, slots=True)
class ThoughtsPage:
    """Whole thoughts of a session, as many as there is room for."""

    session: Session
    branches: tuple[Branch, ...]
    """Those that the thoughts are on."""
    pieces: tuple[Piece, ...]
    """As the caller is told them: without secrets that it did not write."""
    line_ends: tuple[tuple[str | None, int], ...] = ()
    """The last thought before this page of the main line (None) and of each branch."""
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One thought without its text."""

    number: int
    branch_id: str | None
    branch_from: int | None
    revises: int | None
    length: int
    created_at: int


class Line(NamedTuple):
    """A branch, with the numbers of its first and last thoughts."""

    id: str
    from_number: int
    thought_count: int
    first: int
    last: int


class OnBranch(NamedTuple):
    number: int
    branch_id: str


class Revision(NamedTuple):
    """The thought `number` revises the thought `of`."""

    number: int
    of: int


@dataclass(frozen=True, slots=True)
class Shape:
    """The structure of a session without its texts: all of a short one, a part of a long one."""

    session: Session
    first: int
    last: int
    """The range of numbers that is described."""
    end: int
    """The number of the last thought; 0 for none."""
    lines: tuple[Line, ...]
    """The branches, also those outside of the range."""
    on_branches: tuple[OnBranch, ...]
    """The numbers of the range that are on a branch, in order; all others are on the main line."""
    revisions: tuple[Revision, ...]
    """Those made within the range, and those of thoughts within it."""
    density: tuple[tuple[int, int], ...]
    """The number of revisions in each part of the whole session, for those parts that have one."""


@dataclass(frozen=True, slots=True)
class OpenThought:
    """One thought as a person reads it."""

    piece: Piece
    revised_by: tuple[int, ...]
    leaving: tuple[Line, ...]
    """Branches that leave from it."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    sessions: int
    thoughts: int


@dataclass(frozen=True, slots=True)
class Swept:
    archived: int
    purged: int
    calls: int
