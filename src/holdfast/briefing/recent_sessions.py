"""The latest sessions of all projects: which are at work, which were cut off, and when each did something."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from holdfast.briefing.break_records import BreakRecords
from holdfast.briefing.ledger.model import Action, Commit, Ledger
from holdfast.briefing.ledger.service import Ledgers
from holdfast.briefing.predecessors import Predecessors, grown, runs_here
from holdfast.briefing.queries import recent
from holdfast.briefing.queries.agent_sessions import AgentSession
from holdfast.briefing.queries.recent import RecentLedger, Recovery
from holdfast.briefing.unfinished import LaterSession, is_taken_up
from holdfast.connections.queries.connections import connected_agents
from holdfast.files.in_time import ProjectTooSlow, in_time
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Store, Tx

MOST = 200
"""Sessions that are looked at, and recoveries."""
QUIET_MS = 10 * 60_000
"""How long a session that no hook reported must be silent to count as over."""


@dataclass(frozen=True, slots=True)
class RecentSession:
    """One session of an agent, as far as it is known without asking git."""

    session_id: str
    root: str
    project_key: str | None
    started_at: int
    last_at: int
    ended_at: int | None
    live: bool
    at_work: bool
    """Whether a turn of it is under way."""
    cut_off: bool
    """Whether its last turn has no end, and neither it nor a later session goes on with it."""
    asked: str | None = None
    """The user's latest request."""
    said: str | None = None
    """The agent's last words."""
    said_now: str | None = None
    """The same, if it said them in the turn that is under way."""
    doing: str | None = None
    """The entry of its list that is in progress, if it is at work."""
    latest: Action | None = None
    """What it called last, if it is at work."""
    runs: bool = False
    """Whether that call has not been answered yet."""
    directory: str | None = None
    active: tuple[int, ...] = ()
    """The steps of `ACTIVE_MS` in which it did something."""
    commits: tuple[Commit, ...] = ()


@dataclass(frozen=True, slots=True)
class Recently:
    """What agents did lately, in all projects."""

    now: int
    sessions: tuple[RecentSession, ...]
    """The latest first."""
    recoveries: tuple[Recovery, ...]


class RecentSessions:
    """Reads the latest sessions as they are now; a ledger that did not change is not read again."""

    def __init__(
        self, store: Store, machine: str, transcripts: Ledgers, predecessors: Predecessors, records: BreakRecords
    ) -> None:
        self._store = store
        self._records = records
        self._machine = machine
        self._transcripts = transcripts
        self._predecessors = predecessors
        self._ledgers: dict[str, tuple[int, Ledger]] = {}
        """By session, with when it was stored."""

    async def find(self, within_ms: int) -> Recently:
        """Return the sessions of the last while."""
        await self._records.finish()
        stored = await self._read(within_ms)
        # No hook is called for what an agent says and does; its transcript tells.
        behind = await self._behind(stored.seen)
        for one in behind:
            await self._transcripts.bring_up_to_date(one.session_id, Path(str(one.transcript)), one.project)
        return self._sorted(await self._read(within_ms) if behind else stored)

    async def _behind(self, seen: Sequence[AgentSession]) -> list[AgentSession]:
        """Return the sessions that run here and have written something that was not read."""
        running = [one for one in seen if one.transcript and one.machine == self._machine and one.ended_at is None]
        try:
            return await in_time(grown, tuple(one for one in running if runs_here(one)))
        except ProjectTooSlow:
            return []

    async def _read(self, within_ms: int) -> _Stored:
        known = self._ledgers

        def read(tx: Tx) -> tuple[_Stored, dict[str, tuple[int, Ledger]]]:
            since = tx.now() - within_ms
            rows = recent.ledgers(tx, since, MOST)
            ledgers: dict[str, tuple[int, Ledger]] = {}
            for row in rows:
                stored = known.get(row.session_id)
                if stored is not None and stored[0] == row.updated_at:
                    ledgers[row.session_id] = stored
                elif (ledger := recent.content(tx, row.session_id)) is not None:
                    ledgers[row.session_id] = row.updated_at, ledger
            recoveries = recent.recoveries(tx, since, MOST)
            return _Stored(tx.now(), rows, recent.seen(tx, since, MOST), connected_agents(tx), recoveries), ledgers

        stored, self._ledgers = await self._store.read(read)
        return stored

    def _sorted(self, stored: _Stored) -> Recently:
        seen = {one.session_id: one for one in stored.seen}
        told = {row.session_id for row in stored.rows}
        later = self._later(stored)
        sessions = [self._session(stored, row, seen.get(row.session_id), later) for row in stored.rows]
        sessions += [self._without_ledger(stored, one) for one in stored.seen if one.session_id not in told]
        sessions.sort(key=lambda one: one.last_at, reverse=True)
        return Recently(stored.now, tuple(sessions), tuple(stored.recoveries))

    def _session(
        self, stored: _Stored, row: RecentLedger, seen: AgentSession | None, later: Sequence[LaterSession]
    ) -> RecentSession:
        ledger = self._ledgers[row.session_id][1]
        live = seen is not None and self._predecessors.is_live(seen, stored.attached, stored.now)
        over = seen.ended_at is not None if seen is not None else stored.now - row.last_at < QUIET_MS
        return RecentSession(
            row.session_id,
            seen.root if seen is not None else row.root,
            row.project_key,
            ledger.started_at or row.last_at,
            row.last_at,
            seen.ended_at if seen is not None else None,
            live,
            live and ledger.unfinished,
            ledger.unfinished and not (live or over or row.settled_at is not None) and not is_taken_up(ledger, later),
            ledger.latest_request,
            ledger.last_words,
            ledger.last_words if ledger.unfinished and ledger.spoke else None,
            _doing(ledger) if live else None,
            ledger.latest if live and ledger.unfinished else None,
            any(not call.side for call in ledger.calls),
            ledger.cwd,
            tuple(ledger.active),
            tuple(ledger.commits),
        )

    def _later(self, stored: _Stored) -> list[LaterSession]:
        """Return the sessions that were briefed about another's work."""
        told = [(self._ledgers.get(one.session_id), one.told_of) for one in stored.seen if one.told]
        return [LaterSession(known[1], told_of) for known, told_of in told if known is not None]

    def _without_ledger(self, stored: _Stored, seen: AgentSession) -> RecentSession:
        live = self._predecessors.is_live(seen, stored.attached, stored.now)
        return RecentSession(
            seen.session_id,
            seen.root,
            seen.project_key,
            seen.started_at,
            seen.seen_at,
            seen.ended_at,
            live,
            at_work=False,
            cut_off=False,
        )


@dataclass(frozen=True, slots=True)
class _Stored:
    now: int
    rows: Sequence[RecentLedger]
    seen: Sequence[AgentSession]
    attached: set[str]
    recoveries: Sequence[Recovery]


def _doing(ledger: Ledger) -> str | None:
    return next((todo.text for todo in ledger.todos if todo.status == "in_progress"), None)
