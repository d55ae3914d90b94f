"""Reasoning: thoughts go to the session they belong to, and come back without anybody remembering an id."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.caller import Caller
from holdfast.connections.model import Connection
from holdfast.connections.service import Connections
from holdfast.errors import BadInput, Conflict, HoldfastError, NotFound
from holdfast.project import Root, RootSource, locate
from holdfast.protocol.in_time import in_time
from holdfast.reasoning import limits, placing, projects, reading, recording
from holdfast.reasoning.library import Library
from holdfast.reasoning.model import (
    ARCHIVE_AFTER_MS,
    AUTO_RESUME_MS,
    Draft,
    Outcome,
    Session,
    Status,
    of_another_project,
    other_root,
)
from holdfast.reasoning.placing import Placing
from holdfast.reasoning.retention import Retention
from holdfast.reasoning.views import present, session_view, summary
from holdfast.reasoning.wording import first_line
from holdfast.store import Store, Tx
from holdfast.store.calls import CallKey, had_no_effect, once
from holdfast.times import iso

TITLE_FROM_THOUGHT = 80
CONTEXT_DEFAULT, CONTEXT_LIMIT = 10, 100

PAUSED = {
    "recorded": False,
    "paused": True,
    "message": "Recording is paused for this project; `holdfast resume-recording` starts it again. Nothing was stored.",
}

_log = logging.getLogger("holdfast.reasoning")


class Reasoning:
    """The only door to reasoning."""

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
        self.library = Library(store, connections)
        """Finding, reading and arranging sessions."""
        retention = Retention(store, archive_after_ms)
        self.pause, self.unpause = retention.pause, retention.unpause
        self.forget_session, self.forget_project = retention.forget_session, retention.forget_project
        self.sweep = retention.sweep

    # -- thinking ------------------------------------------------------------------------------------------------

    async def think(
        self, caller: Caller, draft: Draft, session_id: str | None = None, key: CallKey | None = None
    ) -> dict[str, Any]:
        """Record a thought in the session it belongs to."""
        limits.draft(draft)
        if session_id is not None:
            limits.session_id(session_id)
        reply = await self._store.write(once(key, lambda tx: self._think(tx, caller, draft, session_id)))
        if session_id is not None and reply.get("crossRoot"):
            _log_cross_root(session_id)
        return reply

    def _think(self, tx: Tx, caller: Caller, draft: Draft, session_id: str | None) -> dict[str, Any]:
        connection = self._connections.current(tx, caller)
        search = Placing(tx, self._connections, connection, caller.root)
        place = search.for_thought(session_id, self._auto_resume_ms)
        session = place.session
        if projects.is_paused(tx, caller.root, session):
            return dict(PAUSED)
        others = None
        if session is None:
            others = search.others(caller.root) or None
            title = first_line(draft.content, TITLE_FROM_THOUGHT) or _dated_title(tx)
            session = recording.create_session(tx, caller.root, title)
        elif session.status is Status.ARCHIVED:
            recording.reopen(tx, session)
        recorded = recording.record(tx, session, draft, connection.id if connection else None)
        across = self._arrive(tx, caller, connection, session, explicit=session_id is not None)
        elsewhere = other_root(session, caller.root)
        renumbered = draft.requested_number is not None and draft.requested_number != recorded.number
        return present(
            sessionId=session.id,
            title=session.title,
            thoughtNumber=recorded.number,
            totalThoughts=recorded.total,
            branchId=draft.branch_id,
            thoughtCount=recorded.count,
            nextThoughtNeeded=draft.next_needed,
            status=place.outcome.value,
            renumbered=renumbered or None,
            requestedNumber=draft.requested_number if renumbered else None,
            duplicate=recorded.duplicate or None,
            reopened=session.status is Status.ARCHIVED or None,
            crossRoot=across or None,
            fromOtherRoot=elsewhere if place.outcome is Outcome.RECOVERED else None,
            others=others,
            message=_pass_the_id_on(session) if connection is None and caller.root is None else None,
        )

    async def start_new(
        self,
        caller: Caller,
        title: str | None = None,
        tags: Sequence[str] = (),
        domain: str | None = None,
        key: CallKey | None = None,
    ) -> dict[str, Any]:
        """Begin a new session and put the caller on it."""
        checked_tags = limits.tags(tags)
        checked_title = None if title is None else limits.title(title)
        checked_domain = None if domain is None else limits.domain(domain)

        def write(tx: Tx) -> dict[str, Any]:
            connection = self._connections.current(tx, caller)
            if projects.is_paused(tx, caller.root, None):
                return {"success": False, **PAUSED}
            others = Placing(tx, self._connections, connection, caller.root).others(caller.root)
            name = checked_title or _dated_title(tx)
            session = recording.create_session(tx, caller.root, name, checked_tags, checked_domain)
            if connection is not None:
                self._connections.attach_session(tx, connection, session.id)
            return present(
                success=True,
                message=f"Started session {session.id}"
                if connection or caller.root
                else f"Started session {session.id}. {_pass_the_id_on(session)}",
                session=session_view(session),
                nextThoughtNumber=1,
                others=others or None,
            )

        return await self._store.write(once(key, write))

    # -- coming back ---------------------------------------------------------------------------------------------

    async def load_context(
        self, caller: Caller, session_id: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> dict[str, Any]:
        """Bring back a session: the one named, else the project's pinned or most recent one."""
        shown = limits.page_size(limit, CONTEXT_DEFAULT, CONTEXT_LIMIT)
        before = limits.number_cursor(cursor)
        if session_id is not None:
            limits.session_id(session_id)

        def write(tx: Tx) -> dict[str, Any]:
            connection = self._connections.current(tx, caller)
            search = Placing(tx, self._connections, connection, caller.root)
            if session_id is not None:
                session = placing.require(tx, session_id)
                verb = "Loaded"
            elif caller.root is None:
                return _no_root(search.attached())
            else:
                pick = search.for_recovery(caller.root)
                if pick.session is None:
                    return _none_free(search.holders(pick.held))
                session = pick.session
                verb = "Auto-recovered"
            across = self._arrive(tx, caller, connection, session, explicit=session_id is not None)
            elsewhere = other_root(session, caller.root)
            return present(
                success=True,
                message=f"{verb} {summary(session, tx.now())}",
                **reading.context(tx, session, shown, before),
                crossRoot=across or None,
                fromOtherRoot=elsewhere if session_id is None else None,
            )

        try:
            reply = await self._store.write(write)
        except (NotFound, Conflict) as error:
            if session_id is None:
                raise
            return _refused(error)
        if session_id is not None and reply.get("crossRoot"):
            _log_cross_root(session_id)
        if session_id is None and caller.root is None:
            _log.warning(
                "load_context without a root from %s: bind one with init bind_root, so that sessions are found again",
                caller.client_name or caller.transport.value,
            )
        return reply

    def _arrive(
        self, tx: Tx, caller: Caller, connection: Connection | None, session: Session, *, explicit: bool
    ) -> bool:
        """Put the caller on the session; says whether that crosses from one root, or one project, to another."""
        elsewhere = other_root(session, caller.root)
        arrives = connection is None or connection.reasoning_session != session.id
        if connection is not None:
            self._connections.attach_session(tx, connection, session.id, joined=explicit)
        if explicit and elsewhere and arrives:
            tx.emit("reasoning.cross_root", session.id, {"connection": connection.id} if connection else {})
        return elsewhere is not None if explicit else of_another_project(session, caller.root)

    # -- who and where -------------------------------------------------------------------------------------------

    async def get_state(self, caller: Caller) -> dict[str, Any]:
        """Who the caller is to Holdfast, where it is and which session it is on."""

        def write(tx: Tx) -> dict[str, Any]:
            connection = self._connections.current(tx, caller)
            session = Placing(tx, self._connections, connection, caller.root).attached()
            return present(
                success=True,
                era=caller.era.value,
                transport=caller.transport.value,
                client=" ".join(filter(None, (caller.client_name, caller.client_version))) or None,
                agentSession=caller.agent_session,
                connection={"session_id": connection.id} if connection else None,
                root=caller.root.uri if caller.root else None,
                rootFrom=caller.root.source.value if caller.root else None,
                boundRoot=connection.bound_root if connection else None,
                session=session_view(session) if session else None,
                recording=not projects.is_paused(tx, caller.root, session),
                message=None if connection else "Not recognised across calls; pass sessionId or mcpRootUri with each.",
            )

        return await self._store.write(write)

    async def list_roots(self, caller: Caller) -> dict[str, Any]:
        """The roots the client named, and the one that counts."""
        connection = await self._connections.find(caller.identity) if caller.identity else None
        return present(
            success=True,
            roots=list(caller.client_roots),
            root=caller.root.uri if caller.root else None,
            rootFrom=caller.root.source.value if caller.root else None,
            boundRoot=connection.bound_root if connection else None,
        )

    async def bind_root(self, caller: Caller, key: CallKey | None = None) -> dict[str, Any]:
        """Bind the caller to the root it names, or to the only one its client has."""
        if caller.identity is None:
            had_no_effect(key)
            return {
                "success": False,
                "message": "This caller is not recognised across calls, so nothing can be bound to it."
                " Pass mcpRootUri with each call.",
            }

        only = caller.client_roots[0] if len(caller.client_roots) == 1 else None
        found = await in_time(locate, only, RootSource.BOUND) if only is not None else None

        def write(tx: Tx) -> dict[str, Any]:
            root = _root_to_bind(caller, found)
            connection = self._connections.current(tx, caller)
            if connection is None:
                raise Conflict("A caller without an identity cannot be bound to a root.")
            self._connections.bind_root(tx, connection, root.uri)
            projects.know(tx, root)
            session = Placing(tx, self._connections, connection, root).attached()
            if session is not None and of_another_project(session, root):
                # Whoever turns to another project means that project's session with the next thought.
                self._connections.attach_session(tx, connection, None)
                session = None
            return present(success=True, boundRoot=root.uri, session=session_view(session) if session else None)

        return await self._store.write(once(key, write))


def _root_to_bind(caller: Caller, only: Root | None) -> Root:
    """The root that is meant; `only` is the one root of its client."""
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


def _pass_the_id_on(session: Session) -> str:
    return f'Not recognised across calls and no root: pass sessionId "{session.id}" with each call to go on in it.'


def _none_free(held: list[dict[str, Any]]) -> dict[str, Any]:
    message = "No sessions found for project. Use start_new to begin."
    if not held:
        return {"success": False, "message": message}
    return {
        "success": False,
        "message": f"{message} Other agents are in the sessions there are; pass a sessionId of theirs to join one.",
        "heldByOthers": held,
    }


def _no_root(attached: Session | None) -> dict[str, Any]:
    return present(
        success=False,
        message="No project root is known: pass a sessionId or an mcpRootUri (or bind one with bind_root).",
        attachedSession=attached.id if attached else None,
    )


def _refused(error: HoldfastError) -> dict[str, Any]:
    """A named session that cannot be loaded is an answer, as the seed has it."""
    return present(success=False, message=error.message, recovery=error.recovery)


def _log_cross_root(session_id: str) -> None:
    # Not which: no log is to name a project, and the event says whose connection it was.
    _log.info("session %s used from another root", session_id)
