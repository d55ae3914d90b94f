"""Finds the sessions that worked in a project before: those that left work open, and the latest of all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.briefing.ledger.model import Ledger
from holdfast.briefing.ledger.on_disk import Folders, with_known
from holdfast.briefing.ledger.service import Ledgers
from holdfast.briefing.queries import agent_sessions, settling
from holdfast.briefing.queries.agent_sessions import AgentSession
from holdfast.briefing.queries.settling import WeighedSession
from holdfast.briefing.session_directory import HERE, SessionDirectory, git_now, session_directory
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
from holdfast.identity.project import Root
from holdfast.lazy_dataclass import dataclass
from holdfast.process.alive import is_running, mark_of
from holdfast.reasoning.queries import projects as project_queries
from holdfast.store import Store, Tx, leases

if TYPE_CHECKING:
    from holdfast.briefing.sharing import SharedTranscripts

OFFERED_MS = 30 * 24 * 3_600_000
"""How recent a session must be to be mentioned without being asked for."""
LOOKED_AT = 10
"""How many of a project's latest sessions are considered."""
CAUGHT_UP = 5
"""How many of their transcripts are read on."""
WEIGHED = 25
"""How many sessions that may have open work are examined."""
MAX_UNFINISHED = 3


@dataclass(frozen=True, slots=True)
class Predecessor:
    """A session that worked in the project before."""

    ledger: Ledger
    seen: AgentSession | None
    """As its hooks told of it; None if only its transcript does."""
    resumable: bool
    """Whether the agent on this machine finds its transcript."""
    open: OpenWork = NOTHING_OPEN
    where: SessionDirectory = HERE
    git: GitNow | None = None
    """What git says about its files now; None if it did not answer."""
    settled: Settled | None = None
    """Why nothing of it is open."""
    root: str = ""
    """The project that it belongs to."""
    transcript: str = ""
    """Where it is on its machine."""

    @property
    def session_id(self) -> str:
        """Its id."""
        return self.ledger.session_id

    @property
    def cut_off(self) -> bool:
        """Whether it neither ended in an orderly way nor with a finished turn."""
        return self.ledger.unfinished and (self.seen is None or self.seen.ended_at is None)


@dataclass(frozen=True, slots=True)
class Past:
    """The sessions that worked in a project before, and those that are running."""

    newest: Predecessor | None = None
    unfinished: tuple[Predecessor, ...] = ()
    """The newest first."""
    more: int = 0
    """How many more are unfinished."""
    live: tuple[AgentSession, ...] = ()
    older: int | None = None
    """When the last session worked, if that is too long ago to be described."""
    settled: tuple[tuple[str, Settled], ...] = ()
    """The sessions that were found to be finished or taken up, by id."""
    weighed_at: int = 0
    """When they were."""
    is_paused: bool = False
    looked_at: int = 0
    """How many sessions were considered."""
    first_commit: str | None = None
    """The project's first commit, if it is stored."""

    @property
    def main(self) -> Predecessor | None:
        """The session whose work is described in full: the newest unfinished one, or else the newest."""
        return self.unfinished[0] if self.unfinished else self.newest


@dataclass(frozen=True, slots=True)
class _Known:
    """What the store knows before any transcript is read."""

    now: int
    sessions: list[AgentSession]
    """Those seen last by hooks."""
    attached: set[str]
    folders: Folders
    is_paused: bool
    weighed: list[WeighedSession] | None
    first_commit: str | None


@dataclass(frozen=True, slots=True)
class _SessionLookup:
    """A session whose transcript is looked up on disk."""

    session_id: str
    directory: str | None
    files: tuple[str, ...]
    is_here: bool
    transcripts: tuple[str, ...]


ANYWHERE = ("",)
"""Stands for the folders of the project."""


class Predecessors:
    """Finds the sessions before. Every agent that starts waits for it, so it rarely goes to the store and to disk."""

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
        most: int = MAX_UNFINISHED,
        thorough: bool = False,
        fetches: bool = True,
    ) -> Past:
        """Return the sessions before a caller's, whose process and folder of transcripts these are.

        At most `most` unfinished ones. A thorough look takes longer where there are many transcripts; `fetches` writes
        those of other machines here."""
        roots = _roots(root)
        found = await self._ledgers.newest_on_disk(roots, folder, thorough=thorough)
        known = await self._store.read(lambda tx: self._read(tx, roots, found))
        others = [one for one in known.sessions if one.session_id != session_id]
        live = [one for one in others if self._is_live(one, known.attached, pid, known.now)]
        passed_over = {session_id, *(one.session_id for one in live)}
        has_read = not known.is_paused and await self._catch_up(known, others, passed_over)
        weighed_at, weighed = known.now, known.weighed or []
        if known.weighed is None or has_read:
            weighed_at, weighed = await self._store.read(lambda tx: (tx.now(), _weighed(tx, roots)))
        over = [one for one in weighed if one.id not in passed_over and not self._is_connected(one.id)]
        over = await self._without_running(over)
        since = 0 if within_ms is None else known.now - within_ms
        # What is open is told however old it is.
        latest = next((one for one in over if not one.ledger.is_empty and one.ledger.last_at >= since), None)
        maybe = [one for one in over if one.settled is None and may_be_open(one.ledger)]
        git = await self._git_now([*maybe, *([latest] if latest is not None and latest not in maybe else [])])
        open_ones, settled = _sorted_out(over, maybe, git, [one.as_later() for one in weighed])
        told = [*open_ones[:most]]
        if latest is not None and all(one is not latest for one, _ in told):
            told.append((latest, NOTHING_OPEN))
        places = await self._places(root, [one for one, _ in told], folder, fetches=fetches)
        predecessors = [
            Predecessor(
                one.ledger,
                one.seen,
                resumable,
                left,
                where,
                git.get(one.directory or ""),
                root=one.root,
                transcript=one.transcript,
            )
            for (one, left), (where, resumable) in zip(told, places, strict=True)
        ]
        unfinished = predecessors[: len(open_ones[:most])]
        newest = next((one for one in predecessors if latest is not None and one.session_id == latest.id), None)
        if newest is not None and newest not in unfinished and latest is not None:
            newest = replace(newest, settled=settled.get(latest.id) or latest.settled)
        older = max((one.ledger.last_at for one in over if not one.ledger.is_empty), default=None)
        return Past(
            newest,
            tuple(unfinished),
            more=len(open_ones) - len(unfinished),
            live=tuple(live),
            older=older if newest is None and not unfinished else None,
            settled=tuple(settled.items()),
            weighed_at=weighed_at,
            is_paused=known.is_paused,
            looked_at=len(over),
            first_commit=known.first_commit,
        )

    def _read(self, tx: Tx, roots: Sequence[Root], found: Folders) -> _Known:
        """Read all that is known in one transaction, without the sessions if transcripts must be read first."""
        sessions = agent_sessions.latest(tx, roots, LOOKED_AT)
        on_disk, is_paused = with_known(tx, roots, found), project_queries.is_paused(tx, roots[0], None)
        is_behind = not is_paused and self._ledgers.is_behind(on_disk)
        weighed = None if is_behind else _weighed(tx, roots)
        first_commit = project_queries.first_commit(tx, roots[0])
        attached = connected_agents(tx)
        return _Known(tx.now(), sessions, attached, on_disk, is_paused, weighed, first_commit)

    async def dismiss(self, root: Root, session_id: str) -> str | None:
        """Stop listing a session's work as open; return its id, or None if the project has no such session."""
        await self.find(root, None, thorough=True)  # what was cut off may not have been read yet
        return await self._store.write(lambda tx: settling.dismiss(tx, _roots(root), session_id))

    async def _git_now(self, sessions: Sequence[WeighedSession]) -> dict[str, GitNow]:
        by_directory: dict[str, list[str]] = {}
        for one in sessions:
            if one.machine == self._machine and one.directory is not None and own_files(one.ledger):
                by_directory.setdefault(one.directory, []).extend(own_files(one.ledger))
        if not by_directory:
            return {}
        since = min(one.ledger.started_at or one.ledger.last_at for one in sessions)
        return await git_now(by_directory, since)

    async def _places(
        self, root: Root, sessions: Sequence[WeighedSession], folder: Path | None, *, fetches: bool
    ) -> list[tuple[SessionDirectory, bool]]:
        """Return where each session worked, and whether the agent on this machine finds its transcript."""
        if not sessions:
            return []
        asked = tuple(
            _SessionLookup(
                one.id, one.directory, tuple(own_files(one.ledger)), one.machine == self._machine, self._files(one)
            )
            for one in sessions
        )
        near, places = await in_time(self._look_at, root, folder, asked)
        found: list[tuple[SessionDirectory, bool]] = []
        for one, (where, resumable) in zip(sessions, places, strict=True):
            if not resumable and fetches and self._shared is not None and self._is_elsewhere(one.seen) and near:
                resumable = await self._shared.fetch(one.id, near[0])
            found.append((where, resumable))
        return found

    def _look_at(
        self, root: Root, folder: Path | None, asked: Sequence[_SessionLookup]
    ) -> tuple[list[Path], list[tuple[SessionDirectory, bool]]]:
        is_sought = self._shared is not None or any(one.transcripts == ANYWHERE for one in asked)
        near = self._ledgers.on_disk.folders_of(root, folder) if is_sought else []
        places = []
        for one in asked:
            where = session_directory(root, one.directory, one.files, one.is_here)
            paths = [Path(path) for path in one.transcripts]
            if one.transcripts == ANYWHERE:
                paths = [self._ledgers.on_disk.file_of(place, one.session_id) for place in near]
            places.append((where, any(path.is_file() for path in paths)))
        return near, places

    def _files(self, one: WeighedSession) -> tuple[str, ...]:
        """Return where a session's transcript can be on this machine; ANYWHERE for this project's folders."""
        if one.seen is not None and not self._is_elsewhere(one.seen):
            return () if one.seen.transcript is None else (one.seen.transcript,)
        if one.seen is not None and self._shared is not None:
            return ()  # the store's copy must be updated from it first
        return (one.transcript,) if one.seen is None and one.machine == self._machine else ANYWHERE

    async def _without_running(self, over: list[WeighedSession]) -> list[WeighedSession]:
        """Leave out sessions that no hook reported and that a process has open, according to the agent's own list."""
        untold = {one.transcript for one in over if one.seen is None and one.ledger.unfinished and one.settled is None}
        if not untold:
            return over
        running = await in_time(self._ledgers.on_disk.running, frozenset(untold))
        return [one for one in over if one.seen is not None or one.id not in running]

    async def _catch_up(
        self, known: _Known, others: Sequence[AgentSession], passed_over: Collection[str | None]
    ) -> bool:
        """Read what sessions wrote after they were read last; returns whether there was anything."""
        has_read = await self._ledgers.catch_up(known.folders, passed_over)
        here = [one for one in others if one.machine == self._machine and one.session_id not in passed_over]
        here = [one for one in here if one.transcript is not None and (one.ended_at is None or one.read_to is None)]
        here = [one for one in here if str(one.transcript).rpartition("/")[0] not in known.folders.looked_at]
        behind = (await asyncio.to_thread(grown, here))[:CAUGHT_UP] if here else []
        for one in behind:
            await self._ledgers.bring_up_to_date(one.session_id, Path(str(one.transcript)), one.project)
        return has_read or bool(behind)

    def _is_elsewhere(self, seen: AgentSession | None) -> bool:
        return seen is not None and seen.machine != self._machine

    def is_live(self, session: AgentSession, attached: Collection[str], now: int) -> bool:
        """Return whether a session is running, for somebody who is in none."""
        return self._is_live(session, attached, None, now)

    def is_gone(self, session: AgentSession) -> bool:
        """Return whether a session was not ended, and its process does not run: it was killed, or its machine died."""
        if session.ended_at is not None or session.pid is None:
            return False
        return session.machine != self._machine or not runs_here(session)

    def _is_live(self, session: AgentSession, attached: Collection[str], pid: int | None, now: int) -> bool:
        """Return whether a session is running: connected somewhere, or its process runs here."""
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


def _sorted_out(
    over: Sequence[WeighedSession],
    maybe: Sequence[WeighedSession],
    git: Mapping[str, GitNow],
    later: Sequence[LaterSession],
) -> tuple[list[tuple[WeighedSession, OpenWork]], dict[str, Settled]]:
    """Return the sessions with open work, the newest first, and those that are now settled."""
    unfinished: list[tuple[WeighedSession, OpenWork]] = []
    settled = {one.id: Settled.FINISHED for one in over if one.settled is None and one not in maybe}
    for one in maybe:
        known = git.get(one.directory or "")
        reason = one.seen.end_reason if one.seen is not None else None
        left = open_work(one.ledger, reason, known, later)
        if left:
            unfinished.append((one, left))
        elif open_work(one.ledger, reason, known, ()):
            settled[one.id] = Settled.TAKEN_UP
        elif known is not None or not own_files(one.ledger):
            settled[one.id] = Settled.FINISHED
    return unfinished, settled


def runs_here(session: AgentSession) -> bool:
    """Return whether the process that said it was in this session still runs on this machine."""
    pid = session.pid
    return pid is not None and is_running(pid) and session.pid_mark in (None, mark_of(pid))


def _weighed(tx: Tx, roots: Sequence[Root]) -> list[WeighedSession]:
    return settling.weighed(tx, roots, CAUGHT_UP, WEIGHED)


def _roots(root: Root) -> tuple[Root, ...]:
    return (root,) if root.top is None else (root, root.top)


def grown(sessions: Sequence[AgentSession]) -> list[AgentSession]:
    """Return those whose transcript is longer, or shorter, than what was read of it."""
    return [one for one in sessions if _size(str(one.transcript)) not in (None, one.read_to)]


def _size(path: str) -> int | None:
    try:
        return Path(path).stat().st_size
    except OSError:
        return None
