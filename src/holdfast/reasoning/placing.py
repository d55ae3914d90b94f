"""Placing: which session a caller's thought belongs to, and which one it gets back.

The ladder of a thought: the session it names, the one its caller is on, the root's most recent open one that no other
live caller holds, the same of this project under another root, a new one. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from holdfast.connections.model import Connection
from holdfast.connections.service import Connections
from holdfast.errors import Conflict, NotFound
from holdfast.project import Root
from holdfast.reasoning import queries
from holdfast.reasoning.model import FORGETTING, Outcome, Pick, Session, Status, first_free
from holdfast.store import Tx

LOOK_AT = 100
"""How many of a project's most recent sessions are looked at for one that is free."""

TELL_OF = 20
"""How many of a project's most recent sessions are looked at for other agents to tell of."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a thought goes; no session means a new one."""

    session: Session | None
    outcome: Outcome


class Placing:
    """One caller looking for its session, inside one transaction."""

    def __init__(self, tx: Tx, connections: Connections, connection: Connection | None, root: Root | None) -> None:
        self._tx = tx
        self._connections = connections
        self._connection = connection
        self._root = root

    def for_thought(self, session_id: str | None, auto_resume_ms: int) -> Place:
        """The session the next thought goes to, locked for this transaction."""
        if session_id is not None:
            return Place(require(self._tx, session_id), Outcome.CONTINUED)
        attached = self.attached()
        if attached is not None:
            return Place(attached, Outcome.CONTINUED)
        if self._root is None:
            return Place(None, Outcome.CREATED)
        self._lock_project(self._root)
        found = self._free(self._recent(self._root, self._tx.now() - auto_resume_ms)).session
        session = _locked(self._tx, found.id) if found else None
        if session is None or session.status is not Status.ACTIVE:
            return Place(None, Outcome.CREATED)
        return Place(session, Outcome.RECOVERED)

    def for_recovery(self, root: Root) -> Pick:
        """The session that an explicit request for the project's context gets back, however old it is."""
        self._lock_project(root)
        return self._free(self._in_order(root))

    def to_offer(self, root: Root) -> Session | None:
        """The session that its caller would get back if it asked now; nothing is locked."""
        mine = self._connection.reasoning_session if self._connection else None
        attached = queries.session(self._tx, mine) if mine else None
        if attached is not None and attached.status is Status.ACTIVE:
            return attached
        return self._free(self._in_order(root, TELL_OF)).session

    def attached(self) -> Session | None:
        """The session this caller is on, locked, unless it was deleted or is another live caller's by now."""
        if self._connection is None or self._connection.reasoning_session is None:
            return None
        session = _locked(self._tx, self._connection.reasoning_session)
        if session is None or session.status is Status.DELETED:
            return None
        return None if self._connections.was_taken_over(self._tx, self._connection) else session

    def others(self, root: Root | None) -> list[dict[str, Any]]:
        """The project's sessions in which other live callers are."""
        if root is None:
            return []
        recent = list(self._recent(root, since=0, limit=TELL_OF))
        return self.holders(recent)

    def holders(self, sessions: Iterable[Session]) -> list[dict[str, Any]]:
        """Of these sessions, those that another live caller is in, with its name."""
        by_id = {session.id: session for session in sessions}
        held = self._connections.live_holders(self._tx, list(by_id), self._connection)
        return [
            {"sessionId": session_id, "title": by_id[session_id].title, "client": holder.label}
            for session_id, holder in held.items()
        ]

    def _lock_project(self, root: Root) -> None:
        """Whoever else comes to this project at the same moment sees which session was made or taken here."""
        self._tx.lock(f"project:{root.key or root.uri}")

    def _free(self, candidates: Iterable[Session]) -> Pick:
        return first_free(
            candidates, lambda session: bool(self._connections.live_holders(self._tx, [session.id], self._connection))
        )

    def _in_order(self, root: Root, limit: int = LOOK_AT) -> Iterator[Session]:
        """The pinned ones first, then the others, the most recent first."""
        pinned = queries.pinned_in_root(self._tx, root.uri)
        seen = {session.id for session in pinned}
        return chain(pinned, (session for session in self._recent(root, 0, limit) if session.id not in seen))

    def _recent(self, root: Root, since: int, limit: int = LOOK_AT) -> Iterator[Session]:
        """The root's sessions; those of the same project elsewhere only where this root has none at all."""
        here = queries.active_in_root(self._tx, root.uri, since, limit)
        if here or root.key is None or queries.root_has_sessions(self._tx, root.uri):
            yield from here
        else:
            yield from queries.active_in_project(self._tx, root.key, since, limit)


def require(tx: Tx, session_id: str) -> Session:
    """The session with this id, locked for this transaction."""
    return usable(_locked(tx, session_id), session_id)


def usable(session: Session | None, session_id: str) -> Session:
    """The session that was found, unless there is none; a deleted one is refused with the way back."""
    if session is None or session.damage == FORGETTING:
        raise missing(session_id)
    if session.status is Status.DELETED:
        raise Conflict(
            f"Session {session_id} was deleted.",
            recovery=f'Bring it back with session {{operation: "restore", sessionId: "{session_id}"}}.',
        )
    return session


def missing(session_id: str) -> NotFound:
    """The error for a session nobody knows."""
    return NotFound(
        f"Session {session_id} not found", recovery='(init {operation: "list_sessions"} lists the ones there are.)'
    )


def _locked(tx: Tx, session_id: str) -> Session | None:
    tx.lock(f"session:{session_id}")
    return queries.session(tx, session_id)
