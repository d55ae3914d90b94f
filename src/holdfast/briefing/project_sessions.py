"""The sessions of one project as a person looks at them: what each was asked, knew and was told, and how it ended."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from holdfast.briefing.break_records import BreakRecords
from holdfast.briefing.knowledge import Knowledge, counts_of, knowledge_of
from holdfast.briefing.ledger.model import Action
from holdfast.briefing.ledger.service import Ledgers
from holdfast.briefing.ledger.wording import relative
from holdfast.briefing.predecessors import Predecessors, grown
from holdfast.briefing.queries import agent_sessions, breaks, project_sessions
from holdfast.briefing.queries.agent_sessions import AgentSession
from holdfast.briefing.queries.breaks import Break
from holdfast.briefing.queries.project_sessions import StoredSession
from holdfast.briefing.recent_sessions import QUIET_MS
from holdfast.briefing.unfinished import LaterSession, Settled, is_taken_up
from holdfast.connections.queries.connections import connected_agents
from holdfast.files.in_time import ProjectTooSlow, in_time
from holdfast.identity.project import Root, path_of
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Store, Tx

MOST_TOLD = 10
"""Of each session."""
MOST_BREAKS = 50
MOST_FILES = 200
MOST_ACTIONS = 6
"""After a break."""
FILES = ("read", "changed")
"""Kinds of actions that are about a file."""


@dataclass(frozen=True, slots=True)
class ProjectSession:
    """A session of an agent, as far as it is known without asking git."""

    session_id: str
    root: str
    project_key: str | None
    machine: str
    started_at: int
    last_at: int
    ended_at: int | None
    live: bool
    at_work: bool
    cut_off: bool
    """Whether its last turn has no end, and neither it nor a later session goes on with it."""
    settled: Settled | None
    asked: str | None
    said: str | None
    turns: int
    changed: int
    """How many files it changed."""
    directory: str | None
    told: tuple[Break, ...]
    """What it was told and when, the latest first."""


@dataclass(frozen=True, slots=True)
class SessionsPage:
    """Some sessions of a project, the latest first."""

    sessions: tuple[ProjectSession, ...]
    more: int | None
    """Where the next page begins; None if there is none."""


@dataclass(frozen=True, slots=True)
class Continued:
    """How a session continued after a break."""

    session_id: str
    did: Knowledge
    """What it did since then."""
    live: bool
    ended_at: int | None
    first: tuple[Action, ...] = ()
    """Its first actions then, in order; none if its transcript is not on this machine."""


class ProjectSessions:
    """Reads the sessions of a project; writes nothing."""

    def __init__(
        self, store: Store, machine: str, ledgers: Ledgers, predecessors: Predecessors, records: BreakRecords
    ) -> None:
        self._store = store
        self._records = records
        self._machine = machine
        self._ledgers = ledgers
        self._predecessors = predecessors

    async def page(self, root: Root, before: int | None, limit: int) -> SessionsPage:
        """Return the latest sessions of a project, or those before a time."""

        def read(tx: Tx) -> SessionsPage:
            found = project_sessions.page(tx, root, before, limit + 1)
            told = breaks.told_to(tx, [one.ledger.session_id for one in found[:limit]], MOST_TOLD)
            attached, now = connected_agents(tx), tx.now()
            sessions = tuple(self._session(tx, one, told, attached, now) for one in found[:limit])
            return SessionsPage(sessions, found[limit - 1].last_at if len(found) > limit else None)

        return await self._store.read(read)

    async def of(self, session_id: str) -> ProjectSession | None:
        """Return a session; None if nothing is known about what it did."""

        def read(tx: Tx) -> ProjectSession | None:
            found = project_sessions.of(tx, session_id)
            told = breaks.told_to(tx, [session_id], MOST_TOLD)
            return None if found is None else self._session(tx, found, told, connected_agents(tx), tx.now())

        return await self._store.read(read)

    async def breaks(self, session_id: str) -> list[Break]:
        """Return the moments at which a session was restarted or continued, the latest first."""
        return await self._store.read(lambda tx: breaks.of_session(tx, session_id, MOST_BREAKS))

    async def whole(self, row_id: int) -> Break | None:
        """Return one of them, with what was known and told."""
        await self._records.finish()
        return await self._store.read(lambda tx: breaks.whole(tx, row_id))

    async def knowledge(self, session_id: str, told: str) -> Knowledge | None:
        """Return what a session knows by now, and how much of it stands in the text of a briefing."""
        found = await self._store.read(lambda tx: project_sessions.of(tx, session_id))
        if found is None:
            return None
        project = path_of(found.root)
        return replace(knowledge_of(found.ledger, project), counts=counts_of(found.ledger, project, told))

    async def continued(self, one: Break) -> Continued | None:
        """Return what the session that was told has done since, by now; None if it has done nothing yet."""
        await self._bring_up_to_date(one.session_id)

        def read(tx: Tx) -> tuple[StoredSession, ProjectSession] | None:
            found = project_sessions.of(tx, one.session_id)
            if found is None or found.ledger.last_at < one.at:
                return None
            return found, self._session(tx, found, (), connected_agents(tx), tx.now())

        stored = await self._store.read(read)
        if stored is None:
            return None
        found, session = stored
        project = path_of(one.root)
        did = knowledge_of(found.ledger, project, since=one.at, most=MOST_FILES)
        first = await self._first_actions(one, found.seen)
        near = (project, found.ledger.cwd)
        first = [replace(each, text=relative(each.text, *near)) if each.kind in FILES else each for each in first]
        return Continued(one.session_id, did, session.live, session.ended_at, tuple(first))

    async def _bring_up_to_date(self, session_id: str) -> None:
        """Read what a session's transcript has to tell by now, if it is on this machine."""
        seen = await self._store.read(lambda tx: agent_sessions.of(tx, session_id))
        if seen is None or seen.transcript is None or seen.machine != self._machine:
            return
        with contextlib.suppress(ProjectTooSlow):  # then what is known is shown
            if await in_time(grown, (seen,)):
                await self._ledgers.bring_up_to_date(session_id, Path(seen.transcript), seen.project)

    async def _first_actions(self, one: Break, seen: AgentSession | None) -> list[Action]:
        """Return what was done right after a break, from the transcript of the session that was told."""
        if seen is None or seen.transcript is None or seen.machine != self._machine:
            return []
        # Another session's work was told at this one's very beginning.
        offset = 0 if one.recovered is not None else one.size
        return [] if offset is None else await self._ledgers.actions(Path(seen.transcript), offset, MOST_ACTIONS)

    def _session(
        self, tx: Tx, one: StoredSession, told: Sequence[Break], attached: set[str], now: int
    ) -> ProjectSession:
        seen, ledger = one.seen, one.ledger
        live = seen is not None and self._predecessors.is_live(seen, attached, now)
        ended_at = seen.ended_at if seen is not None else None
        over = ended_at is not None if seen is not None else now - one.last_at < QUIET_MS
        last_at = one.last_at or (seen.seen_at if seen is not None else 0)
        is_open = ledger.unfinished and not live and not over and one.settled is None
        return ProjectSession(
            ledger.session_id,
            one.root,
            seen.project_key if seen is not None else None,
            one.machine,
            ledger.started_at or last_at,
            last_at,
            ended_at,
            live,
            live and ledger.unfinished,
            is_open and not is_taken_up(ledger, _later(tx, ledger.session_id)),
            one.settled,
            ledger.latest_request,
            ledger.last_words,
            ledger.turns,
            len(ledger.modified),
            ledger.cwd,
            tuple(each for each in told if each.session_id == ledger.session_id),
        )


def _later(tx: Tx, session_id: str) -> list[LaterSession]:
    """Return the sessions that were briefed about this one's work."""
    told = {one.session_id for one in breaks.of_session(tx, session_id, MOST_TOLD) if one.recovered == session_id}
    found = [project_sessions.of(tx, one) for one in told]
    return [LaterSession(one.ledger, one.seen.told_of) for one in found if one is not None and one.seen is not None]
