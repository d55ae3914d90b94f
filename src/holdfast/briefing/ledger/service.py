"""Ledgers, brought up to date from the transcripts on this machine, and found by project."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agents import TranscriptsPart
from holdfast.agents.registry import transcripts_of
from holdfast.agents.transcript_position import Position
from holdfast.briefing.ledger import queries
from holdfast.briefing.ledger.git_watch import GitWatch
from holdfast.briefing.ledger.model import MAX_SUBAGENTS, Action, Ledger, is_session_id
from holdfast.briefing.ledger.on_disk import Folders, FoundTranscript, Standing, TranscriptsOnDisk, standing_of
from holdfast.briefing.ledger.queries import Kept, TranscriptLocation
from holdfast.errors import BadInput
from holdfast.files.in_time import ProjectTooSlow, in_time
from holdfast.identity import forgotten_queries
from holdfast.identity.project import Root, canonical_uri
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Store, Tx

if TYPE_CHECKING:
    from holdfast.agents.transcript_entries import Entry

DISCOVERED = 5
"""How many transcripts of a project that no hook reported are read."""
CAUGHT_UP = 5
"""How many transcripts of sessions that hooks reported are read further."""
LEARNED = 100
"""How many sessions' transcripts show in which directories the agent keeps them."""
ACTIONS_BYTES = 4 * 1024 * 1024
"""Bytes of a transcript that are searched for the first actions behind a place."""
SEEN, NEW = "seen", "new"


class Ledgers:
    """The ledgers of agent sessions."""

    def __init__(
        self,
        store: Store,
        machine: str,
        transcripts: TranscriptsPart | None = None,
        env: Mapping[str, str] = os.environ,
    ) -> None:
        self._store = store
        self._transcripts = transcripts or transcripts_of()
        self._machine = machine
        self.git = GitWatch(store, machine)
        self.on_disk = TranscriptsOnDisk(self._transcripts, env)
        self._has_learned = False
        self._foreign: set[tuple[Path, str]] = set()
        """Transcripts that lie in the folder of a project and were begun in another one."""

    async def bring_up_to_date(self, session_id: str, transcript: Path, root: Root) -> Ledger | None:
        """Return the ledger, updated from its transcript; None if there is neither ledger nor file."""
        if not is_session_id(session_id):
            return None
        read = self._store.read
        before, since = await read(lambda tx: (queries.find(tx, session_id), forgotten_queries.until(tx, root)))
        caught_up = await asyncio.to_thread(_caught_up, self._transcripts, session_id, transcript, before, since)
        if caught_up is None:
            return None if before is None else before.ledger
        if before is not None and not caught_up.changed:
            return before.ledger
        ledger, position = caught_up.ledger, caught_up.position
        based_on = Position() if before is None else before.position
        location = TranscriptLocation(root, self._machine, str(transcript).encode("utf-8", "replace").decode("utf-8"))

        def write(tx: Tx) -> bool:
            # The project may have been forgotten while its transcript was being read.
            return forgotten_queries.until(tx, root) == since and queries.keep(tx, ledger, position, based_on, location)

        if await self._store.write(write):
            return ledger
        return await self.of(session_id)

    async def of(self, session_id: str) -> Ledger | None:
        """Return the ledger of a session as it was last brought up to date."""
        if not is_session_id(session_id):
            return None
        kept = await self._store.read(lambda tx: queries.find(tx, session_id))
        return None if kept is None else kept.ledger

    async def actions(self, transcript: Path, offset: int, most: int) -> list[Action]:
        """Return the first actions behind a place in a transcript; none if they cannot be read in time."""
        from holdfast.briefing.ledger.actions import actions_in  # hooks do without it

        def read() -> list[Action]:
            return list(islice(actions_in(self._transcripts.entries_from(transcript, offset, ACTIONS_BYTES)), most))

        try:
            return await in_time(read)
        except ProjectTooSlow:
            return []

    # -- transcripts that no hook told of ------------------------------------------------------------------------------

    async def newest_on_disk(self, roots: Sequence[Root], folder: Path | None, *, thorough: bool) -> Folders:
        """Return the newest transcripts in these projects' folders, the newest first."""
        await self._learn()
        if folder is not None:
            self.on_disk.learn(self._transcripts.file_of(folder, "any"))
        look = self.on_disk.newest_thoroughly if thorough else self.on_disk.newest
        try:
            return await in_time(look, tuple(roots), folder)
        except ProjectTooSlow:
            return Folders((), frozenset())  # what is known is still reported

    async def newest_of_all(self, most: int, since_ms: int) -> list[FoundTranscript]:
        """Return the newest transcripts of all projects that were written to since a time, the newest first."""
        await self._learn()
        return await asyncio.to_thread(self.on_disk.of_all_projects, most, since_ms)

    async def _learn(self) -> None:
        """Learn from sessions of earlier daemons where the agent keeps transcripts."""
        if not self._has_learned:
            seen = await self._store.read(lambda tx: queries.transcripts_seen(tx, self._machine, LEARNED))
            self._has_learned = True
            for one in reversed(seen):
                self.on_disk.learn(Path(one))

    def began_in(self, transcript: Path) -> str | None:
        """Return the directory in which a session was begun, by its transcript."""
        return self._transcripts.began_in(transcript)

    def is_behind(self, folders: Folders) -> bool:
        """Return whether there are unread parts of transcripts that no hook reported."""
        numbers: Counter[str] = Counter()
        for _, root, standing in self._considered(folders):
            if standing in (Standing.READ, Standing.UNREAD) and numbers[root.uri] < DISCOVERED:
                if standing is Standing.UNREAD:
                    return True
                numbers[root.uri] += 1
        return False

    async def catch_up(self, folders: Folders, passed_over: Collection[str | None]) -> bool:
        """Read what these transcripts have to tell by now, but for some sessions; returns whether there was anything.

        Of those that no hook told of, the newest of each project are read."""
        self.on_disk.learn_managed(one.session_id for one in folders.known.values() if one.is_managed)
        numbers: Counter[str] = Counter()
        for one, root, standing in self._considered(folders):
            if one.session_id in passed_over:
                continue
            if standing is Standing.SEEN_UNREAD and numbers[SEEN] < CAUGHT_UP:
                seen_in = folders.known[one.session_id].seen_in or root
                await self.bring_up_to_date(one.session_id, one.path, seen_in)
                numbers[SEEN] += 1
            elif standing in (Standing.READ, Standing.UNREAD) and numbers[root.uri] < DISCOVERED:
                if standing is Standing.UNREAD:
                    is_known = folders.about(one).ledger_root is not None
                    if not is_known and not await asyncio.to_thread(self._is_of, one.path, root):
                        self._foreign.add((one.path, root.uri))
                        continue
                    await self.bring_up_to_date(one.session_id, one.path, root)
                    numbers[NEW] += 1
                numbers[root.uri] += 1
        return bool(numbers[SEEN] or numbers[NEW])

    def _considered(self, folders: Folders) -> Iterator[tuple[FoundTranscript, Root, Standing]]:
        for one in folders.found:
            if one.root is not None and (one.path, one.root.uri) not in self._foreign:
                standing = standing_of(one, folders.about(one), self._machine, folders.forgotten.get(one.root.uri, 0))
                yield one, one.root, standing

    def _is_of(self, path: Path, root: Root) -> bool:
        """Return whether a session began in this project: projects of different paths can share a folder."""
        cwd = self.began_in(path)
        try:
            return cwd is not None and canonical_uri(cwd) == root.uri
        except BadInput:
            return False


@dataclass(frozen=True, slots=True)
class _CaughtUp:
    ledger: Ledger
    position: Position
    changed: bool


def _caught_up(
    transcripts: TranscriptsPart, session_id: str, transcript: Path, before: Kept | None, since_ms: int
) -> _CaughtUp | None:
    """Fold what is new, and not of a forgotten time, into the stored ledger; None if there is no file."""
    from holdfast.briefing.ledger.folding import fold

    ledger = Ledger(session_id) if before is None else before.ledger
    since = Position() if before is None else before.position

    def restart() -> None:
        nonlocal ledger
        ledger = Ledger(session_id, git_start=ledger.git_start, git_view=ledger.git_view)

    at = 0

    def remember(entry: Entry) -> None:
        nonlocal at
        if since_ms:
            at = entry.at or at
        if at > since_ms or not since_ms:
            fold(ledger, entry)

    for call in ledger.calls:
        call.kind = call.kind or transcripts.kind_of(call.tool)
    read = transcripts.follow(transcript, since, remember, restart=restart)
    if read is None:
        return None
    known = ledger.subagents
    ledger.subagents = transcripts.follow_subagents(transcript, known, remember, most=MAX_SUBAGENTS)
    changed = read.anew or read.position != since or ledger.subagents != known
    return _CaughtUp(ledger, read.position, changed)
