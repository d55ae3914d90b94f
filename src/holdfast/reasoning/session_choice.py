"""Which session a caller's thought belongs to, and which one it gets back.

The ladder of a thought: the session it names, the one its caller is on, the root's pinned one, its most recent open
one, the same of this project under another root, of the checkout that this root is a directory of, a new one; never
one that another live caller holds. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from holdfast.connections.model import Connection
from holdfast.connections.service import Connections
from holdfast.errors import Conflict, NotFound
from holdfast.identity.project import Root
from holdfast.reasoning.model import FORGETTING, Outcome, Recovery, Session, Status, first_free
from holdfast.reasoning.queries import sessions as queries
from holdfast.store import Tx

LOOK_AT = 100
"""How many of a project's most recent sessions are searched for a free one."""

FEW = 4
"""How many of them are read at first."""

TELL_OF = 20
"""How many of a project's most recent sessions are searched for other agents."""


class SessionChoice:
    """Finds the session of one caller, inside one transaction."""

    def __init__(self, tx: Tx, connections: Connections, connection: Connection | None, root: Root | None) -> None:
        self._tx = tx
        self._connections = connections
        self._connection = connection
        self._root = root
        self._roots_with_sessions: set[str] = set()

    def for_thought(self, session_id: str | None, auto_resume_ms: int) -> tuple[Session | None, Outcome]:
        """Choose the session of the next thought, locked for this transaction; None means a new one."""
        if session_id is not None:
            return require(self._tx, session_id), Outcome.CONTINUED
        attached = self.attached()
        if attached is not None:
            return attached, Outcome.CONTINUED
        if self._root is None:
            return None, Outcome.CREATED
        self._lock_project(self._root)
        found = self._free(self._in_order(self._root, self._tx.now() - auto_resume_ms), claim=True).session
        session = _locked(self._tx, found.id) if found else None
        if session is None or session.status is not Status.ACTIVE:
            return None, Outcome.CREATED
        return session, Outcome.RECOVERED

    def for_recovery(self, root: Root) -> Recovery:
        """Return the session that an explicit request for the project's context gets back, however old it is."""
        self._lock_project(root)
        return self._recovery(root, LOOK_AT, claim=True)

    def to_offer(self, root: Root) -> list[Session]:
        """Return the caller's session and the one it would recover if it asked now; nothing is locked.

        The second comes only if it is pinned, or if the first was only just begun.
        """
        mine = self._connection.reasoning_session if self._connection else None
        attached = queries.session(self._tx, mine) if mine else None
        session = self._recovery(root, TELL_OF).session
        if attached is None or attached.status is not Status.ACTIVE:
            return [session] if session else []
        if session is None or session.id == attached.id or not (session.pinned or self._just_begun(attached)):
            return [attached]
        return [attached, session]

    def previous(self, root: Root | None) -> Session | None:
        """Return the session that a caller leaves behind by starting a new one."""
        if root is None:
            return None
        return self._free(found for found in self._in_order(root, limit=TELL_OF) if found.thought_count).session

    def attached(self) -> Session | None:
        """Return the session this caller is on, locked, unless it was deleted or another live caller has it now."""
        if self._connection is None or self._connection.reasoning_session is None:
            return None
        session = _locked(self._tx, self._connection.reasoning_session)
        if session is None or session.status is Status.DELETED:
            return None
        return None if self._connections.was_taken_over(self._tx, self._connection) else session

    def others(self, root: Root | None) -> list[tuple[Session, Connection]]:
        """Return the project's sessions that other live callers are in."""
        if root is None:
            return []
        return self.holders(self._recent(self._with_sessions(root), since=0, limit=TELL_OF))

    def holders(self, sessions: Iterable[Session]) -> list[tuple[Session, Connection]]:
        """Return those of these sessions that another live caller is in, with that caller."""
        by_id = {session.id: session for session in sessions}
        held = self._connections.live_holders(self._tx, list(by_id), self._connection)
        return [(by_id[holder.reasoning_session], holder) for holder in held if holder.reasoning_session]

    def _lock_project(self, root: Root) -> None:
        """Make concurrent callers of this project wait until it is known which session was created or taken."""
        for one in (root, root.top):
            if one is not None:
                self._tx.lock(f"project:{one.key or one.uri}")

    def _free(self, candidates: Iterable[Session], *, claim: bool = False) -> Recovery:
        """Return the first session without another live caller; `claim` locks each before it is checked."""

        def is_held(session: Session) -> bool:
            if claim:
                self._tx.lock(f"session:{session.id}")
            return bool(self._connections.live_holders(self._tx, [session.id], self._connection))

        return first_free(candidates, is_held)

    def _recovery(self, root: Root, limit: int, *, claim: bool = False) -> Recovery:
        """Return the first free session, preferring one with more thoughts to one the caller has just begun."""
        best = self._free(self._in_order(root, limit=limit), claim=claim)
        if best.session is None or best.session.pinned or not self._just_begun(best.session):
            return best
        fuller = self._free(
            (found for found in self._in_order(root, limit=limit) if found.thought_count > 1), claim=claim
        )
        if fuller.session is None:
            return best
        return replace(fuller, just_begun=best.session)

    def _just_begun(self, session: Session) -> bool:
        """Return whether a thought of this caller alone created the session, and nothing followed.

        One that was begun by start_new is older than its first thought. A thought without a connection may be anybody's
        whom nothing tells from others, and this caller was such a one until this call.
        """
        if session.thought_count != 1:
            return False
        first = queries.thoughts(self._tx, session.id, 1, 1, 1, cut=1)
        own = (None, self._connection.id if self._connection else None)
        return bool(first) and first[0].connection_id in own and first[0].created_at == session.created_at

    def _in_order(self, root: Root, since: int = 0, limit: int = LOOK_AT) -> Iterator[Session]:
        """Yield the pinned session first, however old, then those used since then, most recent first."""
        seen: set[str] = set()
        for session in chain.from_iterable(self._in_parts(self._with_sessions(root), since, limit)):
            if session.id not in seen:
                seen.add(session.id)
                yield session

    def _in_parts(self, root: Root, since: int, limit: int) -> Iterator[list[Session]]:
        """Yield them in parts, some twice, because nearly always one of the first is free."""
        yield self._pinned(root)
        first = self._recent(root, since, FEW)
        yield first
        if len(first) == FEW:
            yield self._recent(root, since, limit)

    def _pinned(self, root: Root) -> list[Session]:
        if self._goes_by_project(root):
            return queries.pinned_in_project(self._tx, root.key or "")
        return queries.pinned_in_root(self._tx, root.uri) + queries.pinned_elsewhere(self._tx, root.uri)

    def _recent(self, root: Root, since: int, limit: int = LOOK_AT) -> list[Session]:
        if self._goes_by_project(root):
            return queries.active_in_project(self._tx, root.key or "", since, limit)
        return queries.active_in_root(self._tx, root.uri, since, limit)

    def _with_sessions(self, root: Root) -> Root:
        """Return the root whose sessions count: the checkout's top if a directory in it has none."""
        if root.top is None or self._root_has_sessions(root):
            return root
        return root if queries.project_has_sessions(self._tx, root.key or "") else root.top

    def _goes_by_project(self, root: Root) -> bool:
        """Return whether sessions of the same project elsewhere count: only if this root has none at all."""
        return root.key is not None and not self._root_has_sessions(root)

    def _root_has_sessions(self, root: Root) -> bool:
        """Return whether sessions of this very root exist; what is found stays true in this transaction."""
        if root.uri not in self._roots_with_sessions and queries.root_has_sessions(self._tx, root.uri):
            self._roots_with_sessions.add(root.uri)
        return root.uri in self._roots_with_sessions


def require(tx: Tx, session_id: str) -> Session:
    """Return the session with this id, locked for this transaction."""
    return usable(_locked(tx, session_id), session_id)


def usable(session: Session | None, session_id: str) -> Session:
    """Return the session if it exists; a deleted one is refused with the way to restore it."""
    if session is None or session.damage == FORGETTING:
        raise missing(session_id)
    if session.status is Status.DELETED:
        raise Conflict(
            f"Session {session_id} was deleted.",
            recovery=f'Bring it back with session {{operation: "restore", sessionId: "{session_id}"}}.',
        )
    return session


def missing(session_id: str) -> NotFound:
    return NotFound(f"Session {session_id} not found", recovery='(init {operation: "list_sessions"} lists them.)')


def _locked(tx: Tx, session_id: str) -> Session | None:
    tx.lock(f"session:{session_id}")
    return queries.session(tx, session_id)
