"""Reasoning sessions as data, and the rules they follow; nothing here reads or writes anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum

from holdfast.errors import BadInput
from holdfast.identity.project import Root
from holdfast.lazy_dataclass import dataclass

AUTO_RESUME_MS = 2 * 60 * 60 * 1000
"""How old a session may be for a thought to continue it automatically."""

ARCHIVE_AFTER_MS = 90 * 24 * 60 * 60 * 1000
"""How long a session is unused before it is archived."""

KEEP_DELETED_MS = 30 * 24 * 60 * 60 * 1000
"""How long a deleted session can be restored."""


FORGETTING = "being forgotten"
"""The damage of a session whose removal has begun; it cannot be restored."""

ADOPTED = "adopted from "
"""Prefix of the tag that names the archive or backup a session came with."""


class Status(StrEnum):
    ACTIVE = "active"
    ARCHIVED = "archived"
    """Searchable and readable, but not recovered automatically. A thought sent to it reopens it."""
    DELETED = "deleted"
    """Hidden, and restorable for a while."""


class Outcome(StrEnum):
    """What happened to the session a thought went to."""

    CREATED = "created"
    RECOVERED = "recovered"
    CONTINUED = "continued"


@dataclass(frozen=True, slots=True)
class Session:
    """One line of reasoning with its branches."""

    id: str
    title: str
    tags: tuple[str, ...]
    domain: str | None
    status: Status
    pinned: bool
    root_uri: str | None
    project_key: str | None
    """The project's name on every machine, if it is a git checkout."""
    thought_count: int
    branch_count: int
    head_hash: str
    """The hash of the newest thought."""
    damage: str | None
    """What is known to be lost of it, if anything."""
    created_at: int
    updated_at: int
    """When it was last used or restored; renaming and tagging do not change it, because recovery uses it."""


@dataclass(frozen=True, slots=True)
class Thought:
    """One recorded thought; every field counts towards its hash."""

    session_id: str
    number: int
    """Its place in the session; the main line and all branches share one sequence."""
    content: str
    next_needed: bool
    total: int | None
    """How many thoughts the client expected, at least `number`."""
    revises: int | None
    is_revision: bool
    branch_id: str | None
    branch_from: int | None
    needs_more: bool
    requested_number: int | None
    """The number the client gave it, if it gave one."""
    connection_id: str | None
    created_at: int

    @property
    def renumbered(self) -> bool:
        """Whether the client asked for another number."""
        return self.requested_number is not None and self.requested_number != self.number


@dataclass(frozen=True, slots=True)
class Piece:
    """A thought, or what a page holds of a long one."""

    thought: Thought
    """With the content of this piece only."""
    start: int
    """How many characters come before it."""
    characters: int
    """How many the whole thought has."""

    @property
    def end(self) -> int:
        """Offset of this piece's end in the thought, in characters."""
        return self.start + len(self.thought.content)

    @property
    def whole(self) -> bool:
        return len(self.thought.content) == self.characters


@dataclass(frozen=True, slots=True)
class Branch:
    """An alternative line that leaves the session at one thought."""

    id: str
    from_number: int
    thought_count: int


@dataclass(frozen=True, slots=True)
class Draft:
    """A thought as a client sends it."""

    content: str
    next_needed: bool
    requested_number: int | None = None
    total: int | None = None
    is_revision: bool = False
    revises: int | None = None
    branch_from: int | None = None
    branch_id: str | None = None
    needs_more: bool = False


def next_number(session: Session, highest: int) -> int:
    """Return the number of the session's next thought; `highest` counts only where numbers are known to be missing."""
    return (max(highest, session.thought_count) if session.damage else session.thought_count) + 1


def expected_total(draft: Draft, number: int) -> int | None:
    """Return the client's estimate, raised to the number of the thought it just sent."""
    return None if draft.total is None else max(draft.total, number)


def check_revision(draft: Draft, last: int) -> None:
    """Check that a revised thought exists, if one is named."""
    if draft.revises is not None:
        _check_exists("revisesThought", draft.revises, last)


def branch_start(draft: Draft, known: Branch | None, last: int) -> int | None:
    """Return the thought that the draft's branch leaves from.

    Without a name there is no branch: the thought is on the main line, and what it says of its start is kept.
    """
    if draft.branch_id is None:
        if draft.branch_from is not None:
            _check_exists("branchFromThought", draft.branch_from, last)
        return draft.branch_from
    if known is not None:
        if draft.branch_from not in (None, known.from_number):
            raise BadInput(
                "branchFromThought",
                f"is {draft.branch_from}, but branch {known.id} leaves from thought {known.from_number}",
                recovery=f"Pass {known.from_number} or nothing, or choose another branchId.",
            )
        return known.from_number
    if draft.branch_from is None:
        raise BadInput(
            "branchFromThought",
            f"is missing, and branch {draft.branch_id} is new",
            recovery=f"Name the thought it leaves from: {_range(last)}.",
        )
    _check_exists("branchFromThought", draft.branch_from, last)
    return draft.branch_from


def _check_exists(field: str, number: int, last: int) -> None:
    if not 1 <= number <= last:
        raise BadInput(field, f"{number} does not exist; {_range(last)}")


def _range(last: int) -> str:
    return f"valid range is 1-{last}" if last else "the session has no thought yet"


@dataclass(frozen=True, slots=True)
class Recovery:
    """The session that a caller gets back, if one is free, and those that were passed over."""

    session: Session | None
    held: tuple[Session, ...] = ()
    """Better ones that another live caller is in."""
    just_begun: Session | None = None
    """A newer one that holds nothing but the caller's own first thought."""


def first_free(candidates: Iterable[Session], is_held: Callable[[Session], bool]) -> Recovery:
    """Return the first candidate that no other live agent is in; two live agents never share one."""
    held: list[Session] = []
    for session in candidates:
        if not is_held(session):
            return Recovery(session, tuple(held))
        held.append(session)
    return Recovery(None, tuple(held))


def other_root(session: Session, root: Root | None) -> str | None:
    """Return the session's own root if it differs from the caller's."""
    if root is None or session.root_uri in (None, root.uri):
        return None
    return session.root_uri


def of_another_project(session: Session, root: Root | None) -> bool:
    """Return whether the session belongs to another project than the caller's, whatever the path."""
    if root is None or other_root(session, root) is None:
        return False
    return root.key is None or session.project_key not in (root.key, root.top.key if root.top else root.key)
