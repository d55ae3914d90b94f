"""Ledgers, brought up to date from the transcripts on this machine's disk, and found again by project."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from holdfast.briefing.ledger import forgotten, queries
from holdfast.briefing.ledger.entries import Entry, timestamp
from holdfast.briefing.ledger.git_watch import GitWatch
from holdfast.briefing.ledger.model import Ledger, is_session_id
from holdfast.briefing.ledger.queries import Kept, Place
from holdfast.briefing.ledger.reading import Position, first_cwd, read_new
from holdfast.briefing.ledger.subagents import read_subagents
from holdfast.errors import BadInput
from holdfast.project import Root, canonical_uri
from holdfast.store import Store, Tx

SUFFIX = ".jsonl"
LOOKED_AT = 4
"""Transcripts that are looked into for each one that is wanted; older ones of a shared folder are let be."""


class Ledgers:
    """What agents did, session by session."""

    def __init__(self, store: Store, machine: str) -> None:
        self._store = store
        self._machine = machine
        self.git = GitWatch(store, machine)

    async def bring_up_to_date(self, session_id: str, transcript: Path, root: Root) -> Ledger | None:
        """The ledger with all that its transcript tells by now; None where nothing is known and there is no file."""
        if not is_session_id(session_id):
            return None
        read = self._store.read
        before, since = await read(lambda tx: (queries.find(tx, session_id), forgotten.until(tx, root)))
        caught_up = await asyncio.to_thread(_caught_up, session_id, transcript, before, since)
        if caught_up is None:
            return None if before is None else before.ledger
        if before is not None and not caught_up.changed:
            return before.ledger
        ledger, position = caught_up.ledger, caught_up.position
        based_on = Position() if before is None else before.position
        place = Place(root, self._machine, str(transcript).encode("utf-8", "replace").decode("utf-8"))

        def write(tx: Tx) -> bool:
            # Not what a project was told to forget while its transcript was being read.
            return forgotten.until(tx, root) == since and queries.keep(tx, ledger, position, based_on, place)

        if await self._store.write(write):
            return ledger
        return await self.of(session_id)

    async def of(self, session_id: str) -> Ledger | None:
        """The ledger of a session as it was last brought up to date."""
        if not is_session_id(session_id):
            return None
        kept = await self._store.read(lambda tx: queries.find(tx, session_id))
        return None if kept is None else kept.ledger

    async def discover(self, folder: Path, root: Root, limit: int = 5) -> list[str]:
        """The newest sessions of a project in a folder of transcripts that no hook told of, brought up to date."""
        since = await self._store.read(lambda tx: forgotten.until(tx, root))
        newest = await asyncio.to_thread(_newest, folder, limit * LOOKED_AT, since)
        told = await self._store.read(lambda tx: queries.told_of(tx, [path.stem for path in newest]))
        found: list[str] = []
        for path in newest:
            if len(found) == limit:
                break
            if path.stem in told or not await asyncio.to_thread(_is_of, path, root):
                continue
            if await self.bring_up_to_date(path.stem, path, root) is not None:
                found.append(path.stem)
        return found


@dataclass(frozen=True, slots=True)
class _CaughtUp:
    ledger: Ledger
    position: Position
    changed: bool


def _caught_up(session_id: str, transcript: Path, before: Kept | None, since_ms: int) -> _CaughtUp | None:
    """Read what is new, and of a time that was not forgotten, and fold it into the ledger that was there.

    None where there is no file."""
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
            at = timestamp(entry) or at
        if at > since_ms or not since_ms:
            fold(ledger, entry)

    read = read_new(transcript, since, remember, restart=restart)
    if read is None:
        return None
    known = ledger.subagents
    ledger.subagents = read_subagents(transcript, known, remember)
    changed = read.anew or read.position != since or ledger.subagents != known
    return _CaughtUp(ledger, read.position, changed)


def _newest(folder: Path, limit: int, since_ms: int) -> list[Path]:
    """The transcripts in a folder that were written to last, after a time."""
    found: list[tuple[int, str]] = []
    try:
        with os.scandir(folder) as listed:
            for one in listed:
                name = one.name
                if name.endswith(SUFFIX) and is_session_id(name.removesuffix(SUFFIX)) and one.is_file():
                    found.append((one.stat().st_mtime_ns, one.path))
    except OSError:
        return []  # a project in which no agent has worked has no folder
    newest = sorted((one for one in found if one[0] // 1_000_000 > since_ms), reverse=True)
    return [Path(path) for _, path in newest[:limit]]


def _is_of(path: Path, root: Root) -> bool:
    """Whether a session was begun in this project: projects of different paths can share a folder."""
    cwd = first_cwd(path)
    try:
        return cwd is not None and canonical_uri(cwd) == root.uri
    except BadInput:
        return False
