"""Finds the sessions that worked in a project before: those that left work open, and the latest of all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.briefing.ledger.model import Ledger
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
"""How long ago a session may have worked to be told of unasked."""
LOOKED_AT = 10
"""How many of a project's latest sessions are considered."""
CAUGHT_UP = 5
"""How many of their transcripts are read on."""
WEIGHED = 25
"""How many sessions that may have open work are weighed."""
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
    """What git says of its files now; None if it says nothing."""
    settled: Settled | None = None
    """Why nothing of it is open."""

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
    """When the last session worked, if that is too long ago to be told of."""
    settled: tuple[tuple[str, Settled], ...] = ()
    """The sessions that were found to be finished or taken up, by id."""
    weighed_at: int = 0
    """When they were."""
    is_paused: bool = False

    @property
    def main(self) -> Predecessor | None:
        """The session whose work is told in full: the newest that is unfinished, else the newest."""
        return self.unfinished[0] if self.unfinished else self.newest


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
    ) -> Past:
        """Return the sessions before a caller's, whose process and folder of transcripts these are."""
        roots = _roots(root)

        def read(tx: Tx) -> tuple[int, list[AgentSession], set[str], bool]:
            known = {one.session_id: one for near in roots for one in agent_sessions.latest(tx, near, LOOKED_AT)}
            others = [one for one in known.values() if one.session_id != session_id]
            return tx.now(), others, connected_agents(tx), project_queries.is_paused(tx, root, None)

        now, others, attached, paused = await self._store.read(read)
        live = [one for one in others if self._is_live(one, attached, pid, now)]
        await self._catch_up([one for one in others if one not in live])
        if folder is not None and not others:
            await self._ledgers.discover(folder, root)
        passed_over = {session_id, *(one.session_id for one in live)}
        weighed_at, weighed = await self._store.read(
            lambda tx: (tx.now(), settling.weighed(tx, roots, CAUGHT_UP, WEIGHED))
        )
        since = 0 if within_ms is None else now - within_ms
        over = [one for one in weighed if one.id not in passed_over and not self._is_connected(one.id)]
        # What is open is told however old it is.
        latest = next((one for one in over if not one.ledger.is_empty and one.ledger.last_at >= since), None)
        maybe = [one for one in over if one.settled is None and may_be_open(one.ledger)]
        git = await self._git_now([*maybe, *([latest] if latest is not None and latest not in maybe else [])])
        open_ones, settled = _sorted_out(over, maybe, git, [one.as_later() for one in weighed])
        unfinished = [await self._predecessor(root, one, left, git, folder) for one, left in open_ones[:MAX_UNFINISHED]]
        newest = next((one for one in unfinished if latest is not None and one.session_id == latest.id), None)
        if newest is None and latest is not None:
            newest = await self._predecessor(root, latest, NOTHING_OPEN, git, folder)
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
            is_paused=paused,
        )

    async def dismiss(self, root: Root, session_id: str) -> str | None:
        """Stop telling a session's work as open; returns its id, or None if the project has no such session."""
        await self.find(root, None)  # what was cut off may not have been read yet
        return await self._store.write(lambda tx: settling.dismiss(tx, _roots(root), session_id))

    async def _git_now(self, sessions: Sequence[WeighedSession]) -> dict[str, GitNow]:
        by_directory: dict[str, list[str]] = {}
        for one in sessions:
            if one.machine == self._machine and one.directory is not None and own_files(one.ledger):
                by_directory.setdefault(one.directory, []).extend(own_files(one.ledger))
        if not by_directory:
            return {}
        since = min(one.ledger.started_at or one.ledger.last_at for one in sessions)
        states = await asyncio.gather(*(git_now(directory, files, since) for directory, files in by_directory.items()))
        return {directory: known for directory, known in zip(by_directory, states, strict=True) if known is not None}

    async def _predecessor(
        self, root: Root, one: WeighedSession, left: OpenWork, git: Mapping[str, GitNow], folder: Path | None
    ) -> Predecessor:
        files, same = tuple(own_files(one.ledger)), one.machine == self._machine
        where = await in_time(session_directory, root, one.directory, files, same)
        resumable = await asyncio.to_thread(self._has_transcript, one.id, one.seen, folder)
        if not resumable and self._shared is not None and self._is_elsewhere(one.seen) and folder is not None:
            resumable = await self._shared.fetch(one.id, folder)
        return Predecessor(one.ledger, one.seen, resumable, left, where, git.get(one.directory or ""))

    async def _catch_up(self, over: Sequence[AgentSession]) -> None:
        """Read what the latest sessions wrote after they were read last."""
        here = [one for one in over if one.machine == self._machine and one.transcript is not None]
        here = [one for one in here if one.ended_at is None or one.read_to is None]
        for one in (await asyncio.to_thread(_grown, here))[:CAUGHT_UP]:
            await self._ledgers.bring_up_to_date(one.session_id, Path(str(one.transcript)), one.project)

    def _has_transcript(self, session_id: str, seen: AgentSession | None, folder: Path | None) -> bool:
        """Return whether the agent on this machine finds the session's transcript."""
        if seen is not None and not self._is_elsewhere(seen):
            return seen.transcript is not None and Path(seen.transcript).is_file()
        shared = seen is not None and self._shared is not None
        return not shared and folder is not None and (folder / f"{session_id}.jsonl").is_file()

    def _is_elsewhere(self, seen: AgentSession | None) -> bool:
        return seen is not None and seen.machine != self._machine

    def is_live(self, session: AgentSession, attached: Collection[str], now: int) -> bool:
        """Return whether a session is running, for somebody who is in none."""
        return self._is_live(session, attached, None, now)

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
    """Return the sessions that left work open, the newest first, and those that are settled from now on."""
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


def _roots(root: Root) -> tuple[Root, ...]:
    return (root,) if root.top is None else (root, root.top)


def _grown(sessions: Sequence[AgentSession]) -> list[AgentSession]:
    """Return those whose transcript is longer, or shorter, than what was read of it."""
    return [one for one in sessions if _size(str(one.transcript)) not in (None, one.read_to)]


def _size(path: str) -> int | None:
    try:
        return Path(path).stat().st_size
    except OSError:
        return None
