"""The library: sessions are listed, searched, read, exported, named, pinned, archived, linked and deleted."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.caller import Caller
from holdfast.connections import queries as connection_queries
from holdfast.connections.service import Connections
from holdfast.errors import BadInput, Conflict
from holdfast.project import Root
from holdfast.reasoning import export, limits, queries, reading, recording
from holdfast.reasoning.export import Format, Style
from holdfast.reasoning.model import FORGETTING, KEEP_DELETED_MS, Branch, Session, Status, Thought
from holdfast.reasoning.placing import Placing, missing, require, usable
from holdfast.reasoning.queries import Position, Scope
from holdfast.reasoning.search import index_some, search
from holdfast.reasoning.views import REPLY_BYTES, present, session_view, told_session, told_thought
from holdfast.store import Store, Tx
from holdfast.store.calls import CallKey, once
from holdfast.telling import ANYBODY, Words

LIST_DEFAULT, LIST_LIMIT = 20, 100
SEARCH_DEFAULT, SEARCH_LIMIT = 10, 50
OUTLINE_DEFAULT = 100
GLANCED, GLANCED_AT = 400, 3
"""Characters of a thought, and thoughts, that a glance shows."""
EXPORT_BRANCHES = 10_000
EVERY_STATUS = tuple(Status)
VISIBLE = (Status.ACTIVE, Status.ARCHIVED)

_POSITION = re.compile(r"([0-9]{1,16})_([A-Za-z0-9._-]{1,64})")


@dataclass(frozen=True, slots=True)
class Glance:
    """A session at a glance: where it began, where it stands."""

    session: Session
    own: bool
    """Whether whoever looks is in it already."""
    first: Thought | None
    last: tuple[Thought, ...]
    branches: tuple[Branch, ...]


class Library:
    """What can be done with sessions that are there already. `session_id` None means the one the caller is on."""

    def __init__(self, store: Store, connections: Connections) -> None:
        self._store = store
        self._connections = connections

    # -- finding -------------------------------------------------------------------------------------------------

    async def list(
        self,
        root: Root | None,
        status: str | None = None,
        tags: Sequence[str] = (),
        limit: int | None = None,
        cursor: str | None = None,
    ) -> dict[str, Any]:
        """The project's sessions (without a root: all), the most recently used first."""
        size = limits.page_size(limit, LIST_DEFAULT, LIST_LIMIT)
        after = _position(cursor)
        scope = Scope(root, _statuses(status, (Status.ACTIVE,)), limits.tags(tags))
        found = await self._store.read(lambda tx: queries.sessions_page(tx, scope, after, size + 1))
        reply: dict[str, Any] = {"success": True, "sessions": [session_view(session) for session in found[:size]]}
        if len(found) > size:
            reply["nextCursor"] = f"{found[size - 1].updated_at}_{found[size - 1].id}"
        return reply

    async def index(self) -> None:
        """Make every thought findable; called regularly, so that a search finds little left to do."""
        while await self._store.write(index_some):
            continue

    async def search(
        self,
        root: Root | None,
        query: str,
        *,
        everywhere: bool = False,
        status: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> dict[str, Any]:
        """Thoughts, titles and tags that hold all the words, in this project or everywhere."""
        limits.query(query)
        size = limits.page_size(limit, SEARCH_DEFAULT, SEARCH_LIMIT)
        offset = limits.number_cursor(cursor) or 0
        scope = Scope(None if everywhere else root, _statuses(status, VISIBLE))
        await self.index()
        reply = await self._store.read(lambda tx: search(tx, scope, query, size, offset))
        return reply | {"success": True, "scope": "all" if scope.root is None else "project"}

    # -- reading -------------------------------------------------------------------------------------------------

    async def glance(self, root: Root, identity: str | None) -> Glance | None:
        """What a caller of this root would get back, without giving it to anybody yet."""

        def read(tx: Tx) -> Glance | None:
            connection = connection_queries.by_identity(tx, identity) if identity else None
            session = Placing(tx, self._connections, connection, root).to_offer(root)
            if session is None:
                return None
            end = reading.session_end(tx, session)
            return Glance(
                session=session,
                own=connection is not None and connection.reasoning_session == session.id,
                first=next(iter(queries.thoughts(tx, session.id, 1, 1, 1, cut=GLANCED)), None),
                last=tuple(reversed(queries.thoughts_before(tx, session.id, end + 1, GLANCED_AT, GLANCED))),
                branches=tuple(queries.branches(tx, session.id, GLANCED_AT)) if session.branch_count else (),
            )

        return await self._store.read(read)

    async def outline(
        self, caller: Caller, session_id: str | None, limit: int | None = None, cursor: str | None = None
    ) -> dict[str, Any]:
        """The structure of a session, without the thoughts' content."""
        size = limits.page_size(limit, OUTLINE_DEFAULT, reading.OUTLINE_LIMIT)
        after = limits.number_cursor(cursor) or 0
        return await self._read(caller, session_id, lambda tx, session: reading.outline(tx, session, size, after))

    async def passage(
        self, caller: Caller, session_id: str | None, first: int | None, last: int | None
    ) -> dict[str, Any]:
        """A range of whole thoughts."""
        return await self._read(caller, session_id, lambda tx, session: reading.passage(tx, session, first, last))

    async def thought(self, caller: Caller, session_id: str, number: int) -> Thought:
        """One whole thought, as the caller is told it."""
        limits.session_id(session_id)

        def read(tx: Tx) -> Thought:
            thought = reading.single(tx, _existing(tx, session_id), number)
            return told_thought(thought, self._connection(tx, caller))

        return await self._store.read(read)

    async def session(self, session_id: str) -> Session:
        """A session that is there and not deleted."""
        limits.session_id(session_id)
        return await self._store.read(lambda tx: _existing(tx, session_id))

    async def export(
        self,
        caller: Caller,
        session_id: str | None,
        form: Format = Format.MARKDOWN,
        cursor: str | None = None,
        *,
        style: Style | None = None,
    ) -> dict[str, Any]:
        """A page of the session in a format for people and programs; each page stands alone."""
        start = limits.number_cursor(cursor) or 1

        def read(tx: Tx, session: Session) -> dict[str, Any]:
            end = reading.session_end(tx, session)
            reader = self._connection(tx, caller)
            filling = reading.filling(tx, session.id, start, end, REPLY_BYTES)
            page = [told_thought(thought, reader) for thought in filling]
            branches = queries.branches(tx, session.id, EXPORT_BRANCHES)
            before = queries.line_ends(tx, session.id, start) if start > 1 else {}
            more = bool(page) and page[-1].number < end
            return present(
                sessionId=session.id,
                format=form.value,
                text=Words(export.render(form, told_session(session), branches, page, before, style), ANYBODY),
                nextCursor=str(page[-1].number + 1) if more else None,
            )

        return await self._read(caller, session_id, read)

    async def analyze(self, caller: Caller, session_id: str | None) -> dict[str, Any]:
        """How the session went."""
        from holdfast.reasoning.analysis import Step, analyze

        def read(tx: Tx, session: Session) -> dict[str, Any]:
            steps = [Step(**row) for row in queries.thought_steps(tx, session.id)]
            return {"sessionId": session.id, "title": session.title, **analyze(steps)}

        return await self._read(caller, session_id, read)

    # -- arranging -----------------------------------------------------------------------------------------------

    async def rename(
        self, caller: Caller, session_id: str | None, title: str, key: CallKey | None = None
    ) -> dict[str, Any]:
        """Give a session another title."""
        limits.title(title)

        def change(tx: Tx, session: Session) -> None:
            queries.set_title(tx, session.id, title)
            tx.emit("reasoning.session_updated", session.id, {"changed": "title"})

        return await self._change(caller, session_id, change, key)

    async def tag(
        self, caller: Caller, session_id: str | None, tags: Sequence[str], key: CallKey | None = None
    ) -> dict[str, Any]:
        """Replace a session's tags."""
        checked = limits.tags(tags)

        def change(tx: Tx, session: Session) -> None:
            queries.set_tags(tx, session.id, checked)
            tx.emit("reasoning.session_updated", session.id, {"changed": "tags"})

        return await self._change(caller, session_id, change, key)

    async def pin(self, caller: Caller, session_id: str | None, key: CallKey | None = None) -> dict[str, Any]:
        """Make a session the one its root recovers; another one that was pinned there no longer is."""

        def change(tx: Tx, session: Session) -> None:
            if session.root_uri is None:
                raise Conflict(f"Session {session.id} belongs to no root, so it cannot be pinned in one.")
            if session.status is not Status.ACTIVE:
                raise Conflict(f"Session {session.id} is archived.", recovery="Restore it first.")
            tx.lock(f"root:{session.root_uri}")
            for other in queries.pinned_in_root(tx, session.root_uri):
                if other.id != session.id:
                    queries.set_pinned(tx, other.id, False)
                    tx.emit("reasoning.session_unpinned", other.id)
            if not session.pinned:
                queries.set_pinned(tx, session.id, True)
                tx.emit("reasoning.session_pinned", session.id)

        return await self._change(caller, session_id, change, key)

    async def unpin(self, caller: Caller, session_id: str | None, key: CallKey | None = None) -> dict[str, Any]:
        """Let recovery go by the most recent session again."""

        def change(tx: Tx, session: Session) -> None:
            if session.pinned:
                queries.set_pinned(tx, session.id, False)
                tx.emit("reasoning.session_unpinned", session.id)

        return await self._change(caller, session_id, change, key)

    async def archive(self, caller: Caller, session_id: str | None, key: CallKey | None = None) -> dict[str, Any]:
        """Keep a session out of automatic recovery."""

        def change(tx: Tx, session: Session) -> None:
            if session.status is Status.ACTIVE:
                queries.set_status(tx, session.id, Status.ARCHIVED)
                tx.emit("reasoning.session_archived", session.id)

        return await self._change(caller, session_id, change, key)

    async def restore(self, session_id: str, key: CallKey | None = None) -> dict[str, Any]:
        """Bring back an archived or deleted session."""
        limits.session_id(session_id)

        def write(tx: Tx) -> dict[str, Any]:
            tx.lock(f"session:{session_id}")
            session = queries.session(tx, session_id)
            if session is None:
                raise missing(session_id)
            if session.damage == FORGETTING:
                raise Conflict(f"Session {session_id} is being forgotten; it cannot be restored any more.")
            if session.status is not Status.ACTIVE:
                recording.reopen(tx, session)
            return _changed(tx, session_id)

        return await self._store.write(once(key, write))

    async def link(
        self, caller: Caller, session_id: str | None, linked_id: str, key: CallKey | None = None
    ) -> dict[str, Any]:
        """Link two sessions, in whichever projects they are."""
        limits.session_id(linked_id, "linkTo")

        def change(tx: Tx, session: Session) -> None:
            if session.id == linked_id:
                raise BadInput("linkTo", "is the session itself", recovery="Name another session.")
            other = require(tx, linked_id)
            if queries.link(tx, session.id, other.id):
                tx.emit("reasoning.session_linked", session.id, {"with": other.id})
                tx.emit("reasoning.session_linked", other.id, {"with": session.id})

        return await self._change(caller, session_id, change, key, linkedTo=linked_id)

    async def delete(self, session_id: str | None, confirm: str | None, key: CallKey | None = None) -> dict[str, Any]:
        """Delete a session; `confirm` repeats its exact id."""
        if session_id is None:
            raise BadInput("sessionId", "is missing; delete never guesses", recovery="Name the session to delete.")
        limits.session_id(session_id)
        if confirm != session_id:
            raise BadInput("confirm", "must repeat the exact sessionId", recovery=f'Pass confirm: "{session_id}".')

        def write(tx: Tx) -> dict[str, Any]:
            session = require(tx, session_id)
            queries.set_status(tx, session.id, Status.DELETED)
            tx.emit("reasoning.session_deleted", session.id)
            days = KEEP_DELETED_MS // 86_400_000
            return _changed(tx, session.id) | {"message": f"Deleted; operation restore brings it back for {days} days."}

        return await self._store.write(once(key, write))

    # -- which session -------------------------------------------------------------------------------------------

    @staticmethod
    def _connection(tx: Tx, caller: Caller) -> str | None:
        found = connection_queries.by_identity(tx, caller.identity) if caller.identity else None
        return found.id if found is not None else None

    def _which(self, tx: Tx, caller: Caller, session_id: str | None) -> str:
        if session_id is not None:
            return session_id
        connection = connection_queries.by_identity(tx, caller.identity) if caller.identity else None
        if connection is None or connection.reasoning_session is None:
            raise BadInput(
                "sessionId",
                "is missing, and this caller is on no session",
                recovery='init {operation: "list_sessions"} lists the ids.',
            )
        return connection.reasoning_session

    async def _read(
        self, caller: Caller, session_id: str | None, look: Callable[[Tx, Session], dict[str, Any]]
    ) -> dict[str, Any]:
        if session_id is not None:
            limits.session_id(session_id)

        def read(tx: Tx) -> dict[str, Any]:
            return {"success": True} | look(tx, _existing(tx, self._which(tx, caller, session_id)))

        return await self._store.read(read)

    async def _change(
        self,
        caller: Caller,
        session_id: str | None,
        change: Callable[[Tx, Session], None],
        key: CallKey | None,
        **more: Any,
    ) -> dict[str, Any]:
        if session_id is not None:
            limits.session_id(session_id)

        def write(tx: Tx) -> dict[str, Any]:
            session = require(tx, self._which(tx, caller, session_id))
            change(tx, session)
            return _changed(tx, session.id) | more

        return await self._store.write(once(key, write))


def _existing(tx: Tx, session_id: str) -> Session:
    return usable(queries.session(tx, session_id), session_id)


def _changed(tx: Tx, session_id: str) -> dict[str, Any]:
    session = queries.session(tx, session_id)
    if session is None:
        raise missing(session_id)
    return {"success": True, "session": session_view(session)}


def _statuses(status: str | None, default: tuple[Status, ...]) -> tuple[Status, ...]:
    if status is None:
        return default
    if status == "all":
        return EVERY_STATUS
    try:
        return (Status(status),)
    except ValueError:
        raise BadInput("status", "must be active, archived, deleted or all") from None


def _position(cursor: str | None) -> Position | None:
    if cursor is None:
        return None
    parts = _POSITION.fullmatch(cursor)
    if not parts:
        raise BadInput("cursor", "is not one that was given out here", recovery="Pass nextCursor of an earlier reply.")
    return Position(int(parts[1]), parts[2])
