"""Finds the unfinished work of all projects on this machine, by the rules of each project's own briefing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from holdfast.briefing.ledger import queries as ledger_queries
from holdfast.briefing.ledger.on_disk import UNKNOWN, FoundTranscript
from holdfast.briefing.ledger.queries import KnownTranscript
from holdfast.briefing.ledger.service import Ledgers
from holdfast.briefing.predecessors import OFFERED_MS, WEIGHED, Past, Predecessor, Predecessors
from holdfast.briefing.queries import settling
from holdfast.briefing.session_directory import Relation
from holdfast.briefing.unfinished import Settled
from holdfast.errors import HoldfastError
from holdfast.identity.project import Root, RootSource, locate, path_of
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Store, Tx

MAX_FILES = 200
"""How many of the newest transcripts on disk are considered, and of stored projects with unsettled work."""
SECONDS = 20.0
"""How long to look at projects; the remaining ones are only counted."""
AT_ONCE = 4

Progress = Callable[[float, str], None]


@dataclass(frozen=True, slots=True)
class UnfinishedWork:
    """The sessions with unfinished work on this machine."""

    work: tuple[Predecessor, ...] = ()
    """The newest first."""
    more: int = 0
    """How many more there are."""
    projects: int = 0
    """How many projects were looked at."""
    sessions: int = 0
    """How many of their sessions were."""
    gone: int = 0
    """How many projects were left out because their directory is gone."""
    left_out: int = 0
    """How many projects were skipped for lack of time."""


class AllProjects:
    """Looks at every project that the store or the agent's transcripts know."""

    def __init__(self, store: Store, machine: str, ledgers: Ledgers, predecessors: Predecessors) -> None:
        self._store = store
        self._machine = machine
        self._ledgers = ledgers
        self._predecessors = predecessors

    async def unfinished(self, only: Root | None, limit: int, progress: Progress) -> UnfinishedWork:
        """Return the unfinished work of one project or of all, at most `limit` sessions."""
        progress(0.0, "looking for conversations")
        roots = [only] if only is not None else await self._roots()
        there = set(await asyncio.to_thread(_existing, roots))
        pasts = await self._pasts([root for root in roots if root in there], progress)
        settled = [(past.settled, past.weighed_at) for past in pasts if past.settled and not past.is_paused]
        if settled:
            await self._store.write(lambda tx: _settle(tx, settled))
        told = {one.session_id: one for past in pasts if not past.is_paused for one in past.unfinished}
        here = [one for one in told.values() if one.where.relation is not Relation.ANOTHER_MACHINE]
        work = [one for one in here if one.where.relation is not Relation.GONE]
        work.sort(key=lambda one: (-one.ledger.last_at, one.session_id))
        progress(1.0, "done")
        return UnfinishedWork(
            tuple(work[:limit]),
            max(0, len(work) - limit),
            len(pasts),
            sum(past.looked_at for past in pasts),
            len(roots) - len(there),
            len(there) - len(pasts),
        )

    async def _pasts(self, roots: Sequence[Root], progress: Progress) -> list[Past]:
        pasts: list[Past] = []
        waiting, until = list(reversed(roots)), time.monotonic() + SECONDS

        async def look() -> None:
            while waiting and time.monotonic() < until:
                root = waiting.pop()
                try:
                    past = await self._predecessors.find(root, None, within_ms=None, most=WEIGHED, fetches=False)
                except HoldfastError:
                    continue  # its file system does not answer: the others are still worth looking at
                pasts.append(past)
                progress(len(pasts) / (len(roots) + 1), str(path_of(root.uri)))

        await asyncio.gather(*(look() for _ in range(AT_ONCE)))
        return pasts

    async def _roots(self) -> list[Root]:
        """Return the projects that may have open work, those with the newest transcripts first."""
        since = time.time_ns() // 1_000_000 - OFFERED_MS
        found = await self._ledgers.newest_of_all(MAX_FILES, since)

        def read(tx: Tx) -> tuple[list[KnownTranscript], list[Root]]:
            known = ledger_queries.known_transcripts(tx, [one.session_id for one in found])
            return known, settling.roots_with_unsettled(tx, self._machine, MAX_FILES)

        known, stored = await self._store.read(read)
        on_disk = await asyncio.to_thread(self._projects_of, found, {one.session_id: one for one in known})
        return list({root.uri: root for root in (*on_disk, *stored)}.values())

    def _projects_of(self, found: Iterable[FoundTranscript], known: Mapping[str, KnownTranscript]) -> list[Root]:
        """Return the projects of transcripts, also those that the store does not know. Reads the disk."""
        directories: dict[str, None] = {}
        for one in found:
            about = known.get(one.session_id, UNKNOWN)
            if about.is_managed:
                continue
            stored = about.seen_in.uri if about.seen_in is not None else about.ledger_root
            path = path_of(stored) if stored is not None else None
            directory = str(path) if path is not None else self._ledgers.began_in(one.path)
            if directory is not None:
                directories[directory] = None
        return [root for directory in directories for root in _located(directory)]


def _located(directory: str) -> list[Root]:
    try:
        return [locate(directory, RootSource.DIRECTORY)] if directory.startswith("/") else []
    except HoldfastError:
        return []  # no directory has such a name


def _existing(roots: Iterable[Root]) -> list[Root]:
    return [root for root in roots if (path := path_of(root.uri)) is not None and _is_directory(path)]


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _settle(tx: Tx, settled: Sequence[tuple[Sequence[tuple[str, Settled]], int]]) -> None:
    for sessions, weighed_at in settled:
        settling.settle(tx, sessions, weighed_at)
