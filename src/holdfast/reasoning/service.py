"""Reasoning: thoughts go to the session they belong to, and come back without an id to remember."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from holdfast.connections.model import Connection
from holdfast.connections.queries import connections as connection_queries
from holdfast.connections.service import Connections
from holdfast.errors import BadInput, Conflict, NotFound
from holdfast.files.in_time import in_time
from holdfast.identity.caller import Caller
from holdfast.identity.project import Root, RootSource, locate
from holdfast.lazy_dataclass import dataclass
from holdfast.reasoning import limits, reading, recording, session_choice
from holdfast.reasoning.model import (
    ARCHIVE_AFTER_MS,
    AUTO_RESUME_MS,
    Branch,
    Draft,
    Outcome,
    Session,
    Status,
    Thought,
    next_number,
    of_another_project,
    other_root,
)
from holdfast.reasoning.queries import projects, sessions
from holdfast.reasoning.retention import Retention
from holdfast.reasoning.session_choice import SessionChoice
from holdfast.store import Store, Tx
from holdfast.store.calls import CallKey, first_time, had_no_effect
from holdfast.text import first_line
from holdfast.times import iso

if TYPE_CHECKING:
    from holdfast.reasoning.results import (
        BoundRoot,
        CallerState,
        LoadedContext,
        NotLoaded,
        RecordedThought,
        StartedSession,
    )
    from holdfast.reasoning.session_browser import SessionBrowser

TITLE_FROM_THOUGHT = 80
CONTEXT_DEFAULT, CONTEXT_LIMIT = 10, 100
OFFERED_CHARACTERS, OFFERED_THOUGHTS = 400, 3
"""Characters of a thought, and thoughts and branches, that a session is offered with."""

_log = logging.getLogger("holdfast.reasoning")


@dataclass(frozen=True, slots=True)
class OfferedSession:
    """A session that a caller could continue: its first and last thoughts and its branches."""

    session: Session
    own: bool
    """Whether the caller is in it already."""
    first: Thought | None
    last: tuple[Thought, ...]
    branches: tuple[Branch, ...]


class Reasoning:
    """Records thoughts in the session they belong to, and recovers sessions; the entry point for other packages."""

    def __init__(
        self,
        store: Store,
        connections: Connections,
        *,
        auto_resume_ms: int = AUTO_RESUME_MS,
        archive_after_ms: int = ARCHIVE_AFTER_MS,
    ) -> None:
        self._store = store
        self._connections = connections
        self._auto_resume_ms = auto_resume_ms
        retention = Retention(store, archive_after_ms)
        self.pause, self.unpause = retention.pause, retention.unpause
        self.forget_session, self.forget_project = retention.forget_session, retention.forget_project
        self.sweep = retention.sweep

    @cached_property
    def browser(self) -> SessionBrowser:
        from holdfast.reasoning.session_browser import SessionBrowser  # no hook needs it

        return SessionBrowser(self._store)

    # -- thinking ------------------------------------------------------------------------------------------------

    async def think(
        self, caller: Caller, draft: Draft, session_id: str | None = None, key: CallKey | None = None
    ) -> RecordedThought | None:
        """Record a thought in the session it belongs to; None if recording is paused."""
        limits.draft(draft)
        if session_id is not None:
            limits.session_id(session_id)
        done = await self._store.write(first_time(key, lambda tx: self._think(tx, caller, draft, session_id)))
        if session_id is not None and done is not None and done.cross_root:
            _log_cross_root(session_id)
        return done

    def _think(self, tx: Tx, caller: Caller, draft: Draft, session_id: str | None) -> RecordedThought | None:
        from holdfast.reasoning.results import RecordedThought

        connection = self._connections.current(tx, caller)
        choice = SessionChoice(tx, self._connections, connection, caller.root)
        session, outcome = choice.for_thought(session_id, self._auto_resume_ms)
        if projects.is_paused(tx, caller.root, session):
            return None
        others: Sequence[tuple[Session, Connection]] = ()
        previous = None
        if session is None:
            others = choice.others(caller.root)
            previous = choice.previous(caller.root)
            title = first_line(draft.content, TITLE_FROM_THOUGHT) or _dated_title(tx)
            session = recording.create_session(tx, caller.root, title)
        elif session.status is Status.ARCHIVED:
            recording.reopen(tx, session)
        recorded = recording.record(tx, session, draft, connection.id if connection else None)
        cross_root = self._arrive(tx, caller, connection, session, explicit=session_id is not None)
        return RecordedThought(
            session=session,
            recorded=recorded,
            draft=draft,
            outcome=outcome,
            cross_root=cross_root,
            from_root=other_root(session, caller.root) if outcome is Outcome.RECOVERED else None,
            others=tuple(others),
            previous=previous,
            needs_id=connection is None and caller.root is None,
        )

    async def start_new(
        self,
        caller: Caller,
        title: str | None = None,
        tags: Sequence[str] = (),
        domain: str | None = None,
        key: CallKey | None = None,
    ) -> StartedSession | None:
        """Begin a new session and put the caller on it; None if recording is paused."""
        from holdfast.reasoning.results import StartedSession

        checked_tags = limits.tags(tags)
        if title is not None:
            limits.text("title", title, limits.MAX_TITLE)
        if domain is not None:
            limits.text("domain", domain, limits.MAX_DOMAIN)

        def write(tx: Tx) -> StartedSession | None:
            connection = self._connections.current(tx, caller)
            if projects.is_paused(tx, caller.root, None):
                return None
            others = SessionChoice(tx, self._connections, connection, caller.root).others(caller.root)
            session = recording.create_session(tx, caller.root, title or _dated_title(tx), checked_tags, domain)
            if connection is not None:
                self._connections.attach_session(tx, connection, session.id)
            return StartedSession(session, tuple(others), needs_id=connection is None and caller.root is None)

        return await self._store.write(first_time(key, write))

    # -- coming back ---------------------------------------------------------------------------------------------

    async def offered(self, root: Root, identity: str | None) -> Sequence[OfferedSession]:
        """Return the session a caller is on and the one it would recover, without attaching it to either."""

        def read(tx: Tx) -> Sequence[OfferedSession]:
            connection = connection_queries.by_identity(tx, identity) if identity else None
            mine = connection.reasoning_session if connection is not None else None
            offered = SessionChoice(tx, self._connections, connection, root).to_offer(root)
            return [_offered(tx, session, own=session.id == mine) for session in offered]

        return await self._store.read(read)

    async def load_context(
        self, caller: Caller, session_id: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> LoadedContext | NotLoaded:
        """Return a session: the one named, or else the project's pinned or most recent one."""
        from holdfast.reasoning.results import LoadedContext, NotLoaded

        shown = limits.page_size(limit, CONTEXT_DEFAULT, CONTEXT_LIMIT)
        before = limits.number_cursor(cursor)
        if session_id is not None:
            limits.session_id(session_id)

        def write(tx: Tx) -> LoadedContext | NotLoaded:
            connection = self._connections.current(tx, caller)
            choice = SessionChoice(tx, self._connections, connection, caller.root)
            just_begun = None
            if session_id is not None:
                session = session_choice.require(tx, session_id)
            elif caller.root is None:
                return NotLoaded(NO_ROOT, attached=choice.attached())
            else:
                recovery = choice.for_recovery(caller.root)
                if recovery.session is None:
                    held = tuple(choice.holders(recovery.held))
                    return NotLoaded(f"{NONE_FOUND} {ALL_HELD}" if held else NONE_FOUND, held=held)
                session, just_begun = recovery.session, recovery.just_begun
            cross_root = self._arrive(tx, caller, connection, session, explicit=session_id is not None)
            end = reading.session_end(tx, session)
            return LoadedContext(
                session=session,
                named=session_id is not None,
                loaded_at=tx.now(),
                newest_first=tuple(reading.newest_first(tx, session, before or end + 1, shown)),
                surroundings=reading.surroundings(tx, session),
                next_number=next_number(session, end),
                cross_root=cross_root,
                from_root=other_root(session, caller.root) if session_id is None else None,
                just_begun=just_begun,
            )

        try:
            loaded = await self._store.write(write)
        except (NotFound, Conflict) as error:
            if session_id is None:
                raise
            return NotLoaded(error.message, error.recovery)  # an answer and not an error, as in the seed
        if session_id is not None and isinstance(loaded, LoadedContext) and loaded.cross_root:
            _log_cross_root(session_id)
        if session_id is None and caller.root is None:
            _log.warning(
                "load_context without a root from %s: bind one with init bind_root, so that sessions are found again",
                caller.client_name or caller.transport.value,
            )
        return loaded

    def _arrive(
        self, tx: Tx, caller: Caller, connection: Connection | None, session: Session, *, explicit: bool
    ) -> bool:
        """Attach the caller to the session; says whether that crosses from one root or project to another."""
        elsewhere = other_root(session, caller.root)
        if elsewhere and caller.root is not None and sessions.is_linked(tx, session.id, caller.root.uri):
            elsewhere = None  # it belongs here as well
        arrives = connection is None or connection.reasoning_session != session.id
        if connection is not None:
            self._connections.attach_session(tx, connection, session.id, joined=explicit)
        if explicit and elsewhere and arrives:
            tx.emit("reasoning.cross_root", session.id, {"connection": connection.id} if connection else {})
        return elsewhere is not None and (explicit or of_another_project(session, caller.root))

    # -- who and where -------------------------------------------------------------------------------------------

    async def get_state(self, caller: Caller) -> CallerState:
        """Return how Holdfast recognises the caller, its root and its session."""
        from holdfast.reasoning.results import CallerState

        def write(tx: Tx) -> CallerState:
            connection = self._connections.current(tx, caller)
            session = SessionChoice(tx, self._connections, connection, caller.root).attached()
            return CallerState(caller, connection, session, not projects.is_paused(tx, caller.root, session))

        return await self._store.write(write)

    async def bound_root(self, caller: Caller) -> str | None:
        connection = await self._connections.find(caller.identity) if caller.identity else None
        return connection.bound_root if connection else None

    async def bind_root(self, caller: Caller, key: CallKey | None = None) -> BoundRoot | None:
        """Bind the caller to the root it names, or to its client's only one; None for an unrecognised caller."""
        from holdfast.reasoning.results import BoundRoot

        if caller.identity is None:
            had_no_effect(key)
            return None

        only = caller.client_roots[0] if len(caller.client_roots) == 1 else None
        found = await in_time(locate, only, RootSource.BOUND) if only is not None else None

        def write(tx: Tx) -> BoundRoot:
            root = _root_to_bind(caller, found)
            connection = self._connections.current(tx, caller)
            if connection is None:
                raise Conflict("A caller without an identity cannot be bound to a root.")
            self._connections.bind_root(tx, connection, root.uri)
            projects.know(tx, root)
            session = SessionChoice(tx, self._connections, connection, root).attached()
            linked = session is not None and sessions.is_linked(tx, session.id, root.uri)
            if session is not None and of_another_project(session, root) and not linked:
                # The next thought after a change of project belongs to that project's session.
                self._connections.attach_session(tx, connection, None)
                session = None
            return BoundRoot(root.uri, session)

        return await self._store.write(first_time(key, write))


NO_ROOT = "No project root is known: pass a sessionId or an mcpRootUri (or bind one with bind_root)."
NONE_FOUND = "No sessions found for project. Use start_new to begin."
ALL_HELD = "Other agents are in all of them; pass a sessionId to join one."


def _root_to_bind(caller: Caller, only: Root | None) -> Root:
    """Choose the root to bind; `only` is the client's only root."""
    if caller.root is not None and caller.root.source is RootSource.ARGUMENT:
        return replace(caller.root, source=RootSource.BOUND)
    if len(caller.client_roots) > 1:
        raise BadInput(
            "mcpRootUri",
            f"is missing, and the client has {len(caller.client_roots)} roots",
            recovery=f"Pass one of: {', '.join(caller.client_roots[:10])}",
        )
    if only is not None:
        return only
    if caller.root is not None:
        return replace(caller.root, source=RootSource.BOUND)
    raise BadInput("mcpRootUri", "is missing, and the client has no root", recovery="Example: file:///home/me/project")


def _dated_title(tx: Tx) -> str:
    return f"Session {iso(tx.now())[:16].replace('T', ' ')}"


def _offered(tx: Tx, session: Session, *, own: bool) -> OfferedSession:
    end = reading.session_end(tx, session)
    last = sessions.thoughts_before(tx, session.id, end + 1, OFFERED_THOUGHTS, OFFERED_CHARACTERS)
    return OfferedSession(
        session=session,
        own=own,
        first=next(iter(sessions.thoughts(tx, session.id, 1, 1, 1, cut=OFFERED_CHARACTERS)), None),
        last=tuple(reversed(last)),
        branches=tuple(sessions.branches(tx, session.id, OFFERED_THOUGHTS)) if session.branch_count else (),
    )


def _log_cross_root(session_id: str) -> None:
    # The log must not name a project; the event names the connection.
    _log.info("session %s used from another root", session_id)
