"""Which sessions were at work in a project before: those that left work open, and the latest that did something."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.briefing import places
from holdfast.briefing.ledger.model import Ledger
from holdfast.briefing.ledger.service import Ledgers
from holdfast.briefing.places import HERE, Where
from holdfast.briefing.queries import agent_sessions, settling
from holdfast.briefing.queries.agent_sessions import AgentSession
from holdfast.briefing.unfinished import (
    NOTHING_OPEN,
    GitNow,
    LaterSession,
    OpenWork,
    Settled,
    may_be_open,
    open_work,
    own_files,
)
from holdfast.connections.queries.connections import connected_agents
from holdfast.files.in_time import in_time
from holdfast.identity.project import Root, path_of
from holdfast.process.alive import is_running, mark_of
from holdfast.reasoning.queries import projects as project_queries
from holdfast.store import Row, Store, Tx, leases

if TYPE_CHECKING:
    from holdfast.briefing.sharing import SharedTranscripts

OFFERED_MS = 30 * 24 * 3_600_000
"""How long ago a session may have been at work to be told of unasked."""
LOOKED_AT = 10
"""How many of a project's latest sessions are looked at."""
CAUGHT_UP = 5
"""How many of them are read, for one that did something."""
WEIGHED = 25
"""How many sessions that may have open work are weighed."""
MOST_UNFINISHED = 3


@dataclass(frozen=True, slots=True)
class Predecessor:
    """A session that was at work in the project before."""

    ledger: Ledger
    seen: AgentSession | None
    """As its hooks told of it; None where only its transcript does."""
    resumable: bool
    """Whether the agent here finds its transcript."""
    open: OpenWork = NOTHING_OPEN
    where: Where = HERE
    git: GitNow | None = None
    """What git says of its files now; None where it does not."""
    settled: Settled | None = None
    """Why nothing of it is open."""

    @property
    def session_id(self) -> str:
        """Its id."""
        return self.ledger.session_id

    @property
    def cut_off(self) -> bool:
        """Whether it did not end in an orderly way, and not with a turn that was over."""
        return self.ledger.unfinished and (self.seen is None or self.seen.ended_at is None)


@dataclass(frozen=True, slots=True)
class Past:
    """What was at work in a project before, and what is now."""

    newest: Predecessor | None = None
    unfinished: tuple[Predecessor, ...] = ()
    """The newest first."""
    more: int = 0
    """Further unfinished ones."""
    live: tuple[AgentSession, ...] = ()
    older: int | None = None
    """When a session was last at work that is not told of, because that is long ago."""
    settled: Mapping[str, Settled] = field(default_factory=dict)
    """What was found to be finished or taken up."""
    weighed_at: int = 0
    """When that was."""
    is_paused: bool = False

    @property
    def main(self) -> Predecessor | None:
        """The session whose work is told in full: the newest that is unfinished, else the newest."""
        return self.unfinished[0] if self.unfinished else self.newest


class Predecessors:
    """Looks for the sessions before. Every agent that starts waits for it: it goes to the store and to disk rarely."""

    def __init__(
        self,
        store: Store,
        machine: str,
        ledgers: Ledgers,
        is_connected: Callable[[str], bool],
        shared: SharedTranscripts | None,
    ) -> None:
        self._store = store
        self._machine = machine
        self._ledgers = ledgers
        self._is_connected = is_connected
        self._shared = shared

    async def find(
        self,
        root: Root,
        session_id: str | None,
        pid: int | None = None,
        folder: Path | None = None,
        *,
        within_ms: int | None = OFFERED_MS,
    ) -> Past:
        """The sessions before a caller's, whose process and folder of transcripts these are; and who is at work now."""
        roots = (root,) if root.top is None else (root, root.top)

        def read(tx: Tx) -> tuple[int, list[AgentSession], set[str], bool]:
            known = {one.session_id: one for near in roots for one in agent_sessions.latest(tx, near, 0, LOOKED_AT)}
            others = [one for one in known.values() if one.session_id != session_id]
            paused = project_queries.is_paused(tx, root, None)
            return tx.now(), others, connected_agents(tx), paused

        now, others, attached, paused = await self._store.read(read)
        live = [one for one in others if self._is_live(one, attached, pid, now)]
        await self._catch_up([one for one in others if one not in live])
        if folder is not None and not others:
            await self._ledgers.discover(folder, root)
        passed_over = {session_id, *(one.session_id for one in live)}
        weighed_at, weighed = await self._store.read(lambda tx: (tx.now(), _weighed(tx, roots)))
        since = 0 if within_ms is None else now - within_ms
        over = [one for one in weighed if one.is_over(passed_over, self._is_connected)]
        # What is open is told however old it is.
        latest = next((one for one in over if not one.ledger.is_empty and one.ledger.last_at >= since), None)
        maybe = [one for one in over if not one.is_settled and may_be_open(one.ledger)]
        git = await self._git_now([*maybe, *([latest] if latest is not None and latest not in maybe else [])])
        open_ones, settled = _sorted_out(over, maybe, git, [one.as_later() for one in weighed])
        told = [await self._told(root, one, left, git, folder) for one, left in open_ones[:MOST_UNFINISHED]]
        newest = next((one for one in told if latest is not None and one.session_id == latest.id), None)
        if newest is None and latest is not None:
            newest = await self._told(root, latest, NOTHING_OPEN, git, folder)
            newest = replace(newest, settled=settled.get(latest.id) or latest.settled)
        older = max((one.ledger.last_at for one in over if not one.ledger.is_empty), default=None)
        return Past(
            newest,
            tuple(told),
            more=len(open_ones) - len(told),
            live=tuple(live),
            older=older if newest is None and not told else None,
            settled=settled,
            weighed_at=weighed_at,
            is_paused=paused,
        )

    async def dismiss(self, root: Root, session_id: str) -> str | None:
        """Tell a session's work no longer as open; its id, or None where the project has no such session."""
        await self.find(root, None)  # what was cut off may not have been read yet
        roots = (root,) if root.top is None else (root, root.top)
        return await self._store.write(lambda tx: settling.dismiss(tx, roots, session_id))

    async def _git_now(self, sessions: Sequence[_Weighed]) -> dict[str, GitNow]:
        asked: dict[str, list[str]] = {}
        for one in sessions:
            if one.machine == self._machine and one.directory is not None and own_files(one.ledger):
                asked.setdefault(one.directory, []).extend(own_files(one.ledger))
        if not asked:
            return {}
        return await places.git_now(asked, min(one.ledger.started_at or one.ledger.last_at for one in sessions))

    async def _told(
        self, root: Root, one: _Weighed, left: OpenWork, git: Mapping[str, GitNow], folder: Path | None
    ) -> Predecessor:
        files, same = tuple(own_files(one.ledger)), one.machine == self._machine
        where = await in_time(places.where, root, one.directory, files, same)
        resumable = await asyncio.to_thread(self._has_transcript, one.id, one.seen, folder)
        if not resumable and self._is_elsewhere(one.seen) and folder is not None:
            resumable = await self._fetched(one.id, folder)
        return Predecessor(one.ledger, one.seen, resumable, left, where, git.get(one.directory or ""))

    async def _catch_up(self, over: Sequence[AgentSession]) -> None:
        """Read what the latest sessions wrote after they were read last."""
        here = [one for one in over if one.machine == self._machine and one.transcript is not None]
        here = [one for one in here if one.ended_at is None or one.read_to is None]
        for one in (await asyncio.to_thread(_grown, here))[:CAUGHT_UP]:
            await self._ledgers.bring_up_to_date(one.session_id, Path(str(one.transcript)), one.place)

    def _has_transcript(self, session_id: str, seen: AgentSession | None, folder: Path | None) -> bool:
        """Whether the agent here finds the session's transcript, as it is known here."""
        if seen is not None and not self._is_elsewhere(seen):
            return seen.transcript is not None and Path(seen.transcript).is_file()
        shared = seen is not None and self._shared is not None
        return not shared and folder is not None and (folder / f"{session_id}.jsonl").is_file()

    def _is_elsewhere(self, seen: AgentSession | None) -> bool:
        return seen is not None and seen.machine != self._machine

    async def _fetched(self, session_id: str, folder: Path) -> bool:
        """Whether a session of another machine could be put where the agent here finds it."""
        return self._shared is not None and await self._shared.fetch(session_id, folder)

    def _is_live(self, session: AgentSession, attached: Collection[str], pid: int | None, now: int) -> bool:
        """Whether a session is at work now: connected somewhere, or its process runs here."""
        if session.ended_at is not None:
            return False
        here = session.machine == self._machine
        if here and session.pid is not None and session.pid == pid:
            return False  # the same process has gone on to another session
        if self._is_connected(session.session_id):
            return True
        if here and session.pid is not None:  # its process says more than a connection that may not have noticed
            return runs_here(session)
        return session.session_id in attached or not leases.expired(session.alive_until, now)


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A session that may have left work open."""

    ledger: Ledger
    row: Row
    seen: AgentSession | None

    @property
    def id(self) -> str:
        return self.ledger.session_id

    @property
    def machine(self) -> str:
        return str(self.row["machine"])

    @property
    def is_settled(self) -> bool:
        return self.row["settled_at"] is not None

    @property
    def settled(self) -> Settled | None:
        return Settled(self.row["settled"]) if self.is_settled else None

    @property
    def end_reason(self) -> str | None:
        return self.seen.end_reason if self.seen is not None else None

    @property
    def directory(self) -> str | None:
        if self.ledger.cwd:
            return self.ledger.cwd
        path = path_of(str(self.row["root"]))
        return None if path is None else str(path)

    def is_over(self, passed_over: Collection[str | None], is_connected: Callable[[str], bool]) -> bool:
        return self.id not in passed_over and not is_connected(self.id)

    def as_later(self) -> LaterSession:
        return LaterSession(self.ledger, self.seen.told_of if self.seen is not None else frozenset())


def _sorted_out(
    over: Sequence[_Weighed], maybe: Sequence[_Weighed], git: Mapping[str, GitNow], later: Sequence[LaterSession]
) -> tuple[list[tuple[_Weighed, OpenWork]], dict[str, Settled]]:
    """The sessions that left work open, the newest first, and those that are settled from now on."""
    found: list[tuple[_Weighed, OpenWork]] = []
    settled = {one.id: Settled.FINISHED for one in over if not one.is_settled and one not in maybe}
    for one in maybe:
        known = git.get(one.directory or "")
        left = open_work(one.ledger, one.end_reason, known, later)
        if left:
            found.append((one, left))
        elif open_work(one.ledger, one.end_reason, known, ()):
            settled[one.id] = Settled.TAKEN_UP
        elif known is not None or not own_files(one.ledger):
            settled[one.id] = Settled.FINISHED
    return found, settled


def _weighed(tx: Tx, roots: Sequence[Root]) -> list[_Weighed]:
    """The latest sessions, and all that are not settled; the latest first."""
    names = dict.fromkeys((*settling.latest(tx, roots, CAUGHT_UP), *settling.unsettled(tx, roots, WEIGHED)))
    found = [
        _Weighed(ledger, row, agent_sessions.of(tx, ledger.session_id)) for ledger, row in settling.ledgers(tx, names)
    ]
    return sorted(found, key=lambda one: one.ledger.last_at, reverse=True)


def runs_here(session: AgentSession) -> bool:
    """Whether the process that said it was in this session is still there, on this machine."""
    pid = session.pid
    return pid is not None and is_running(pid) and session.pid_mark in (None, mark_of(pid))


def _grown(sessions: Sequence[AgentSession]) -> list[AgentSession]:
    """Those whose transcript is longer, or shorter, than what was read of it."""
    return [one for one in sessions if _size(str(one.transcript)) not in (None, one.read_to)]


def _size(path: str) -> int | None:
    try:
        return Path(path).stat().st_size
    except OSError:
        return None
