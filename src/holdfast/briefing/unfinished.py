"""Decides what of a session's work is still open, by its ledger, its end and what git says now. Pure, no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from holdfast.briefing.ledger.changed_files import changed_files
from holdfast.briefing.ledger.model import Ledger
from holdfast.lazy_dataclass import dataclass

CLEARED = "clear"
"""The end reason of a session that its user cleared: its plans are given up, its files are not."""


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
    """When each was last committed, in milliseconds; None if not requested."""


@dataclass(frozen=True, slots=True)
class LaterSession:
    """A later session: what it was told of, and what it did."""

    ledger: Ledger
    told_of: frozenset[str]
    """The sessions whose open work it was told."""


@dataclass(frozen=True, slots=True)
class OpenWork:
    """What a session left open; false if nothing."""

    todos: tuple[str, ...] = ()
    turn: bool = False
    """Whether the last turn has no end."""
    files: tuple[str, ...] = ()
    """Its own files that are not committed."""

    def __bool__(self) -> bool:
        return bool(self.todos or self.turn or self.files)


NOTHING_OPEN = OpenWork()


def own_files(ledger: Ledger) -> list[str]:
    """Return the files that a session modified, the latest last."""
    return [file.path for file in changed_files(ledger)[0]]


def may_be_open(ledger: Ledger) -> bool:
    """Return whether a session may have left work open, so that git must be asked."""
    return ledger.unfinished or bool(own_files(ledger)) or any(todo.status != "completed" for todo in ledger.todos)


def open_work(ledger: Ledger, end_reason: str | None, git: GitNow | None, later: Sequence[LaterSession]) -> OpenWork:
    """Return the open work of a session that is over; nothing if it was taken up or finished since.

    `git` is None if there is no repository or it did not answer: then it is unknown what is committed.
    """
    if is_taken_up(ledger, later):
        return NOTHING_OPEN
    files = own_files(ledger)
    uncommitted = tuple(path for path in files if git is not None and path in git.uncommitted)
    if end_reason == CLEARED or _is_committed_since(ledger, files, uncommitted, git):
        return OpenWork(files=uncommitted)
    todos = tuple(todo.text for todo in ledger.todos if todo.status != "completed")
    return OpenWork(todos, ledger.unfinished, uncommitted)


def _is_committed_since(ledger: Ledger, files: Sequence[str], uncommitted: Sequence[str], git: GitNow | None) -> bool:
    """Return whether all that a session changed is committed, and something of it after its last entry."""
    if git is None or git.committed is None or not files or uncommitted:
        return False
    return any(git.committed.get(path, 0) >= ledger.last_at for path in files)


def is_taken_up(ledger: Ledger, later: Sequence[LaterSession]) -> bool:
    """Return whether one of these sessions continues a session's work."""
    return any(_takes_up(one, ledger) for one in later)


def _takes_up(one: LaterSession, before: Ledger) -> bool:
    """Return whether a later session continues the work of an earlier one."""
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
    # Only the request is left: a session that was told about it and did any work has continued or ignored it.
    return bool(own_files(after) or after.read or after.todos or after.failed)
