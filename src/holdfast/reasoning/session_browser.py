"""Sessions that exist already: listed, searched, read, renamed, tagged, pinned, archived, linked and deleted."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from holdfast.connections.queries import connections as connection_queries
from holdfast.errors import BadInput, Conflict
from holdfast.identity.caller import Caller
from holdfast.identity.project import Root
from holdfast.reasoning import limits, reading, recording
from holdfast.reasoning.model import FORGETTING, Piece, Session, Status, Thought
from holdfast.reasoning.queries import projects, sessions, shape
from holdfast.reasoning.queries.sessions import Position, Scope
from holdfast.reasoning.results import (
    FoundLately,
    Line,
    OnBranch,
    OpenThought,
    OutlinePage,
    SearchPage,
    SessionsPage,
    Shape,
    Step,
    Surroundings,
    ThoughtsPage,
)
from holdfast.reasoning.search import index_some, newest, search
from holdfast.reasoning.session_choice import missing, require, usable
from holdfast.store import Store, Tx
from holdfast.store.calls import CallKey, first_time

if TYPE_CHECKING:
    from holdfast.reasoning.reading import Measure

LIST_DEFAULT, LIST_LIMIT = 20, 100
SEARCH_DEFAULT, SEARCH_LIMIT = 10, 50
OUTLINE_DEFAULT = 100
PAGE_DEFAULT, PAGE_LIMIT = 100, 1000
REPLY_CHARACTERS = 23_500
"""Characters of a reply's content, so that the whole reply stays under 25,000: agents cut off what is longer."""
WAIT_FOR_INDEX = 2.0
"""Seconds that a search waits for thoughts to be indexed; what is indexed by then is searched."""
NOT_INDEXED = "The newest thoughts are still being indexed and were not searched; search again in a minute."
MAX_ROOTS = 20
SHAPE_RANGE = 6_000
"""Numbers of a session whose structure is read at once."""
SHAPE_CROWD = 1_000
"""Thoughts on branches and revisions beyond which less of a session is read at once."""
SHAPE_LINES = 200
"""Branches of a session that are drawn: the oldest, and as many of those in view."""
SHAPE_PARTS = 120
VISIBLE = (Status.ACTIVE, Status.ARCHIVED)

_POSITION = re.compile(r"([0-9]{1,16})_([A-Za-z0-9._-]{1,64})")

T = TypeVar("T")


class SessionBrowser:
    """Lists, searches, reads and changes sessions. `session_id` None means the one the caller is on."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # -- finding -------------------------------------------------------------------------------------------------

    async def list(
        self,
        root: Root | None,
        status: str | None = None,
        tags: Sequence[str] = (),
        limit: int | None = None,
        cursor: str | None = None,
    ) -> SessionsPage:
        """Return the project's sessions (without a root: all), the most recently used first."""
        most = limits.page_size(limit, LIST_DEFAULT, LIST_LIMIT)
        after = _position(cursor)
        scope = Scope(root, _statuses(status, (Status.ACTIVE,)), limits.tags(tags))
        page = await self._store.read(lambda tx: sessions.sessions_page(tx, scope, after, most + 1))
        return SessionsPage(tuple(page[:most]), more=len(page) > most)

    async def index(self, seconds: float = math.inf) -> bool:
        """Index every thought, or as many as the time allows; return whether none is left.

        Called regularly, so that a search has little left to index. After a restore or a salvage it has everything."""
        until = time.monotonic() + seconds
        while await self._store.write(index_some):
            if time.monotonic() >= until:
                return False
        return True

    async def search(
        self,
        root: Root | None,
        query: str,
        *,
        everywhere: bool = False,
        status: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> SearchPage:
        """Return the thoughts, titles and tags that contain all words, in this project or everywhere."""
        limits.text("query", query, limits.MAX_QUERY)
        most = limits.page_size(limit, SEARCH_DEFAULT, SEARCH_LIMIT)
        offset = limits.number_cursor(cursor) or 0
        scope = Scope(None if everywhere else root, _statuses(status, VISIBLE))
        indexed = await self.index(WAIT_FOR_INDEX)
        page = await self._store.read(lambda tx: search(tx, scope, query, most, offset))
        return page if indexed else replace(page, advice=" ".join(filter(None, (NOT_INDEXED, page.advice))))

    async def search_lately(self, query: str, limit: int | None = None) -> FoundLately:
        """Return the newest thoughts, and sessions by their titles and tags, with all words, of all projects."""
        limits.text("query", query, limits.MAX_QUERY)
        most = limits.page_size(limit, SEARCH_DEFAULT, SEARCH_LIMIT)
        found = await self._store.read(lambda tx: newest(tx, query, most))
        if found.all_searched:
            return found
        await self.index(WAIT_FOR_INDEX)
        return await self._store.read(lambda tx: newest(tx, query, most))

    # -- reading -------------------------------------------------------------------------------------------------

    async def outline(
        self, caller: Caller, session_id: str | None, limit: int | None = None, cursor: str | None = None
    ) -> OutlinePage:
        """Return the structure of a session, without the thoughts' content."""
        most = limits.page_size(limit, OUTLINE_DEFAULT, reading.OUTLINE_LIMIT)
        after = limits.number_cursor(cursor) or 0
        return await self._read(caller, session_id, lambda tx, session: reading.outline(tx, session, most, after))

    async def passage(
        self,
        caller: Caller,
        session_id: str | None,
        first: int | None,
        last: int | None,
        limit: int | None = None,
        cursor: str | None = None,
        *,
        measure: Measure,
    ) -> ThoughtsPage:
        """Return a range of whole thoughts, as many as fit into a reply by `measure`."""
        most = limits.page_size(limit, PAGE_DEFAULT, PAGE_LIMIT)
        start = limits.place_cursor(cursor)

        def read(tx: Tx, session: Session) -> ThoughtsPage:
            begin = first if first is not None or start is None else start[0]
            begin, end = reading.checked_range(tx, session, begin, last)
            reader = _reader(tx, caller)
            return reading.thoughts_page(
                tx, session, reader, start or (begin, 0), end, limit=most, room=REPLY_CHARACTERS, measure=measure
            )

        return await self._read(caller, session_id, read)

    async def thought(self, caller: Caller, session_id: str, number: int) -> Thought:
        """Return one whole thought, masked for the caller."""
        limits.session_id(session_id)

        def read(tx: Tx) -> Thought:
            thought = reading.single(tx, _existing(tx, session_id), number)
            return reading.masked_thought(thought, _reader(tx, caller))

        return await self._store.read(read)

    async def ids_beginning(self, beginning: str) -> Sequence[str]:
        """Return up to two ids that begin like this, the exact one first."""
        return await self._store.read(lambda tx: sessions.ids_beginning(tx, beginning))

    async def session(self, session_id: str) -> Session:
        """Return a session that exists and is not deleted."""
        limits.session_id(session_id)
        return await self._store.read(lambda tx: _existing(tx, session_id))

    async def export(
        self,
        caller: Caller,
        session_id: str | None,
        limit: int | None = None,
        cursor: str | None = None,
        *,
        measure: Measure,
        room: int = REPLY_CHARACTERS,
    ) -> ThoughtsPage:
        """Return one page of a session, as much as fits into `room` by `measure`."""
        most = limits.page_size(limit, max(PAGE_LIMIT, room), PAGE_LIMIT)
        start = limits.place_cursor(cursor) or (1, 0)

        def read(tx: Tx, session: Session) -> ThoughtsPage:
            page = reading.thoughts_page(
                tx,
                reading.masked_session(session),
                _reader(tx, caller),
                start,
                reading.session_end(tx, session),
                limit=most,
                room=room,
                measure=measure,
                branches=sessions.branches(tx, session.id, reading.EXPORT_BRANCHES),
            )
            before = sessions.line_ends(tx, session.id, start[0]) if start[0] > 1 else []
            return replace(page, line_ends=tuple(before))

        return await self._read(caller, session_id, read)

    async def steps(self, caller: Caller, session_id: str | None) -> tuple[Session, Sequence[Step]]:
        """Return every thought of a session without its text, for its analysis."""
        return await self._read(
            caller, session_id, lambda tx, session: (session, sessions.thought_steps(tx, session.id))
        )

    async def shape(self, session_id: str, around: int | None = None, parts: int = SHAPE_PARTS) -> Shape:
        """Return the structure of a session around a thought (None: the last), without any text."""
        limits.session_id(session_id)

        def read(tx: Tx) -> Shape:
            session = _existing(tx, session_id)
            end = reading.session_end(tx, session)
            middle = max(1, min(end if around is None else around, end))
            first, last = _range(middle, end, SHAPE_RANGE)
            if shape.crowd(tx, session_id, first, last) > SHAPE_CROWD:
                first, last = _range(middle, end, SHAPE_CROWD // 2)
            made = shape.revisions(tx, session_id, first, last, SHAPE_CROWD)
            of = shape.revisions_of(tx, session_id, first, last, SHAPE_CROWD)
            branched = shape.on_branches(tx, session_id, first, last) if session.branch_count else []
            return Shape(
                session=session,
                first=first,
                last=last,
                end=end,
                lines=_lines(tx, session, branched),
                on_branches=tuple(branched),
                revisions=tuple(dict.fromkeys((*made, *of))),
                density=tuple(shape.density(tx, session_id, end, parts)) if end >= parts else (),
            )

        return await self._store.read(read)

    async def beginnings(self, session_id: str, numbers: Sequence[int], cut: int) -> Sequence[Thought]:
        """Return these thoughts of a session as stored, each with no more than how it begins."""
        limits.session_id(session_id)
        return await self._store.read(lambda tx: shape.beginnings(tx, session_id, numbers[:PAGE_LIMIT], cut))

    async def open_thought(self, session_id: str, number: int, start: int, most: int) -> OpenThought | None:
        """Return a part of one thought as stored, with what leads from it; None if it was lost."""
        limits.session_id(session_id)

        def read(tx: Tx) -> OpenThought | None:
            found = shape.piece(tx, session_id, number, start, most)
            if found is None:
                return None
            revised = shape.revisions_of(tx, session_id, number, number, reading.LINKS_SHOWN)
            return OpenThought(
                Piece(found[0], start, found[1]),
                tuple(one.number for one in revised),
                tuple(shape.lines_from(tx, session_id, number, reading.LINKS_SHOWN)),
            )

        return await self._store.read(read)

    async def linked(self, session_id: str) -> Surroundings:
        """Return the sessions and roots that a session is linked to, without its branches."""
        limits.session_id(session_id)
        return await self._store.read(
            lambda tx: reading.surroundings(tx, replace(_existing(tx, session_id), branch_count=0))
        )

    # -- arranging -----------------------------------------------------------------------------------------------

    async def rename(self, caller: Caller, session_id: str | None, title: str, key: CallKey | None = None) -> Session:
        limits.text("title", title, limits.MAX_TITLE)

        def change(tx: Tx, session: Session) -> None:
            sessions.set_title(tx, session.id, title)
            tx.emit("reasoning.session_updated", session.id, {"changed": "title"})

        return await self._change(caller, session_id, change, key)

    async def tag(
        self, caller: Caller, session_id: str | None, tags: Sequence[str], key: CallKey | None = None
    ) -> Session:
        checked = limits.tags(tags)

        def change(tx: Tx, session: Session) -> None:
            sessions.set_tags(tx, session.id, checked)
            tx.emit("reasoning.session_updated", session.id, {"changed": "tags"})

        return await self._change(caller, session_id, change, key)

    async def pin(self, caller: Caller, session_id: str | None, key: CallKey | None = None) -> Session:
        """Make a session the one its root recovers; the one pinned there before is unpinned."""

        def change(tx: Tx, session: Session) -> None:
            if session.root_uri is None:
                raise Conflict(f"Session {session.id} has no root, so it cannot be pinned.")
            if session.status is not Status.ACTIVE:
                raise Conflict(f"Session {session.id} is archived.", recovery="Restore it first.")
            tx.lock(f"root:{session.root_uri}")
            for other in sessions.pinned_in_root(tx, session.root_uri):
                if other.id != session.id:
                    _unpin(tx, other)
            if not session.pinned:
                sessions.set_pinned(tx, session.id, True)
                tx.emit("reasoning.session_pinned", session.id)

        return await self._change(caller, session_id, change, key)

    async def unpin(self, caller: Caller, session_id: str | None, key: CallKey | None = None) -> Session:
        """Let recovery choose the most recent session again."""

        return await self._change(caller, session_id, _unpin, key)

    async def archive(self, caller: Caller, session_id: str | None, key: CallKey | None = None) -> Session:
        """Keep a session out of automatic recovery."""

        def change(tx: Tx, session: Session) -> None:
            if session.status is Status.ACTIVE:
                sessions.set_status(tx, session.id, Status.ARCHIVED)
                tx.emit("reasoning.session_archived", session.id)

        return await self._change(caller, session_id, change, key)

    async def restore(self, session_id: str, key: CallKey | None = None) -> Session:
        limits.session_id(session_id)

        def write(tx: Tx) -> Session:
            tx.lock(f"session:{session_id}")
            session = sessions.session(tx, session_id)
            if session is None:
                raise missing(session_id)
            if session.damage == FORGETTING:
                raise Conflict(f"Session {session_id} is being forgotten and cannot be restored.")
            if session.status is not Status.ACTIVE:
                recording.reopen(tx, session)
            return _changed(tx, session_id)

        return await self._store.write(first_time(key, write))

    async def link_root(
        self, caller: Caller, session_id: str | None, root: Root, key: CallKey | None = None
    ) -> Session:
        """Link a session to another root, so that it is listed, found and recovered there too."""

        def change(tx: Tx, session: Session) -> None:
            if session.root_uri == root.uri:
                raise BadInput("mcpRootUri", "is the session's own root", recovery="Name another root.")
            if len(sessions.linked_roots(tx, session.id, MAX_ROOTS)) == MAX_ROOTS:
                raise Conflict(f"Session {session.id} belongs to {MAX_ROOTS} further roots, which is the limit.")
            projects.know(tx, root)
            if sessions.link_root(tx, session.id, root):
                tx.emit("reasoning.session_updated", session.id, {"changed": "roots"})

        return await self._change(caller, session_id, change, key)

    async def link(self, caller: Caller, session_id: str | None, linked_id: str, key: CallKey | None = None) -> Session:
        limits.session_id(linked_id, "linkTo")

        def change(tx: Tx, session: Session) -> None:
            if session.id == linked_id:
                raise BadInput("linkTo", "is the session itself", recovery="Name another session.")
            other = require(tx, linked_id)
            if sessions.link(tx, session.id, other.id):
                tx.emit("reasoning.session_linked", session.id, {"with": other.id})
                tx.emit("reasoning.session_linked", other.id, {"with": session.id})

        return await self._change(caller, session_id, change, key)

    async def delete(self, session_id: str | None, confirm: str | None, key: CallKey | None = None) -> Session:
        """Delete a session; `confirm` repeats its exact id."""
        if session_id is None:
            raise BadInput(
                "sessionId", "is missing; delete needs it spelled out", recovery="Name the session to delete."
            )
        limits.session_id(session_id)
        if confirm != session_id:
            raise BadInput("confirm", "must repeat the exact sessionId", recovery=f'Pass confirm: "{session_id}".')

        def write(tx: Tx) -> Session:
            session = require(tx, session_id)
            sessions.set_status(tx, session.id, Status.DELETED)
            tx.emit("reasoning.session_deleted", session.id)
            return _changed(tx, session.id)

        return await self._store.write(first_time(key, write))

    # -- which session -------------------------------------------------------------------------------------------

    @staticmethod
    def _which(tx: Tx, caller: Caller, session_id: str | None) -> str:
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

    async def _read(self, caller: Caller, session_id: str | None, look: Callable[[Tx, Session], T]) -> T:
        if session_id is not None:
            limits.session_id(session_id)
        return await self._store.read(lambda tx: look(tx, _existing(tx, self._which(tx, caller, session_id))))

    async def _change(
        self, caller: Caller, session_id: str | None, change: Callable[[Tx, Session], None], key: CallKey | None
    ) -> Session:
        if session_id is not None:
            limits.session_id(session_id)

        def write(tx: Tx) -> Session:
            session = require(tx, self._which(tx, caller, session_id))
            change(tx, session)
            return _changed(tx, session.id)

        return await self._store.write(first_time(key, write))


def _range(middle: int, end: int, most: int) -> tuple[int, int]:
    """Return up to `most` numbers around one, within 1 to `end`."""
    first = max(1, min(middle - most // 2, end - most + 1))
    return first, min(end, first + most - 1)


def _lines(tx: Tx, session: Session, branched: Sequence[OnBranch]) -> tuple[Line, ...]:
    """Return the oldest branches of a session, and beyond those the ones that these thoughts are on."""
    if not session.branch_count:
        return ()
    oldest = shape.lines(tx, session.id, SHAPE_LINES)
    known = {line.id for line in oldest}
    others = list(dict.fromkeys(one.branch_id for one in branched if one.branch_id not in known))
    return (*oldest, *shape.lines_of(tx, session.id, others[:SHAPE_LINES]))


def _unpin(tx: Tx, session: Session) -> None:
    if session.pinned:
        sessions.set_pinned(tx, session.id, False)
        tx.emit("reasoning.session_unpinned", session.id)


def _reader(tx: Tx, caller: Caller) -> str | None:
    """Return the connection that reads, whose own secrets are not masked."""
    connection = connection_queries.by_identity(tx, caller.identity) if caller.identity else None
    return connection.id if connection is not None else None


def _existing(tx: Tx, session_id: str) -> Session:
    return usable(sessions.session(tx, session_id), session_id)


def _changed(tx: Tx, session_id: str) -> Session:
    session = sessions.session(tx, session_id)
    if session is None:
        raise missing(session_id)
    return session


def _statuses(status: str | None, default: tuple[Status, ...]) -> tuple[Status, ...]:
    if status is None:
        return default
    if status == "all":
        return tuple(Status)
    try:
        return (Status(status),)
    except ValueError:
        raise BadInput("status", "must be active, archived, deleted or all") from None


def cursor_after(session: Session) -> str:
    return f"{session.updated_at}_{session.id}"


def _position(cursor: str | None) -> Position | None:
    if cursor is None:
        return None
    parts = limits.cursor_parts(_POSITION, cursor)
    return Position(int(parts[1]), parts[2])
