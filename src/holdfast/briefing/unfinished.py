"""What of a session's work is still open: one rule, given its ledger, how it ended, and what git says now. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.briefing.ledger.changed_files import changed_files
from holdfast.briefing.ledger.model import Ledger

CLEARED = "clear"
"""The end reason of a conversation that its user put away: its plans went with it, its files did not."""


class Settled(StrEnum):
    """Why work is no longer told as open."""

    FINISHED = "finished"
    TAKEN_UP = "taken up"
    DISMISSED = "dismissed"


@dataclass(frozen=True, slots=True)
class GitNow:
    """What git says now of the files of some sessions in one checkout, by absolute path."""

    uncommitted: frozenset[str] = frozenset()
    committed: Mapping[str, int] | None = None
    """When each was last committed, in milliseconds; None where nobody asked."""


@dataclass(frozen=True, slots=True)
class LaterSession:
    """A session that came after: what it was told of, and what it did."""

    ledger: Ledger
    told_of: frozenset[str]
    """The sessions whose open work it was told."""


@dataclass(frozen=True, slots=True)
class OpenWork:
    """What a session left open; empty where there is nothing."""

    todos: tuple[str, ...] = ()
    turn: bool = False
    """The last turn has no end."""
    files: tuple[str, ...] = ()
    """Files of its own that are not committed."""

    def __bool__(self) -> bool:
        return bool(self.todos or self.turn or self.files)


NOTHING_OPEN = OpenWork()


def own_files(ledger: Ledger) -> list[str]:
    """The files that a session modified, the latest last."""
    return [file.path for file in changed_files(ledger)[0]]


def may_be_open(ledger: Ledger) -> bool:
    """Whether it is worth asking git about a session."""
    return ledger.unfinished or bool(own_files(ledger)) or any(todo.status != "completed" for todo in ledger.todos)


def open_work(ledger: Ledger, end_reason: str | None, git: GitNow | None, later: Sequence[LaterSession]) -> OpenWork:
    """What is open of a session that is over; nothing where it was taken up or finished since.

    `git` is None where there is no repository, or it did not answer: then nobody can say what is committed.
    """
    if any(_takes_up(one, ledger) for one in later):
        return NOTHING_OPEN
    files = own_files(ledger)
    uncommitted = tuple(path for path in files if git is not None and path in git.uncommitted)
    if end_reason == CLEARED or _is_committed_since(ledger, files, uncommitted, git):
        return OpenWork(files=uncommitted)
    todos = tuple(todo.text for todo in ledger.todos if todo.status != "completed")
    return OpenWork(todos, ledger.unfinished, uncommitted)


def _is_committed_since(ledger: Ledger, files: Sequence[str], uncommitted: Sequence[str], git: GitNow | None) -> bool:
    """Whether what a session changed was committed after its last word, and nothing is left: it was finished."""
    if git is None or git.committed is None or not files or uncommitted:
        return False
    return any(git.committed.get(path, 0) >= ledger.last_at for path in files)


def _takes_up(one: LaterSession, before: Ledger) -> bool:
    """Whether a later session goes on with the work of one before."""
    after = one.ledger
    if after.session_id == before.session_id or after.last_at < before.last_at:
        return False
    if after.started_at == before.started_at and after.first_request == before.first_request and before.first_request:
        return True  # resumed under another id: its transcript begins with a copy of the old one
    if before.session_id not in one.told_of:
        return False
    mine = set(own_files(before))
    plans = {todo.text for todo in before.todos if todo.status != "completed"}
    if mine or plans:
        return not mine.isdisjoint(own_files(after)) or not plans.isdisjoint(todo.text for todo in after.todos)
    # Nothing is left of it but the request: whoever knew of it and did some work has taken it up, or passed it over.
    return bool(own_files(after) or after.read or after.todos or after.failed)
