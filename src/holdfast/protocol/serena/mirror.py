"""The mirror: after each commit, a background loop brings the memories of a worktree up to date with its runs.

They are written through Serena if it answers, otherwise as files into its folder, otherwise into the state file next to
the session logs, otherwise nowhere. The store is authoritative; a mirror that is behind, or in a fallback location, is
retried and shown by `holdfast doctor`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from holdfast.errors import HoldfastError
from holdfast.files.in_time import in_time
from holdfast.files.inside import UnreadableInside
from holdfast.identity.project import path_of
from holdfast.protocol import memories
from holdfast.protocol.memories import ImportedState
from holdfast.protocol.protocols import SESSIONS
from holdfast.protocol.runs import RunRecord, RunStatus
from holdfast.protocol.serena import memory_files, mirror_queries
from holdfast.protocol.serena.client import SerenaTrouble
from holdfast.protocol.serena.mirror_queries import Entry
from holdfast.protocol.service import Protocols
from holdfast.store import Store

FIRST_RETRY_S = 5.0
MAX_RETRY_S = 1800.0

CURRENT_STATE_FILE = f"{memory_files.MEMORIES}/{memories.CURRENT_STATE}.md"
STATE_JSON = f"{SESSIONS}/.session-state.json"

logger = logging.getLogger(__name__)


class MemoryLocation(StrEnum):
    """Where the memories of a worktree are kept."""

    SERENA = "serena"
    FILES = "files"
    STATE_FILE = "state-file"
    NONE = "none"


class Memories(Protocol):
    """Storage of memories by name."""

    async def read(self, name: str) -> str | None:
        """Return a memory's text; None if there is none."""

    async def write(self, name: str, text: str) -> None:
        """Write a memory's text."""

    async def delete(self, name: str) -> None:
        """Remove a memory, if it exists."""


Serena = Callable[[Path, bool], Awaitable[Memories | None]]
"""Gives the memories of a worktree, trusted or not; None if Serena does not keep them. Raises SerenaTrouble."""


class RetryDelays:
    """Retry delays per worktree, longer after each failure."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[float, float]] = {}

    def over(self, root: str) -> bool:
        return self._clock() >= self._kept.get(root, (0.0, 0.0))[1]

    def lengthen(self, root: str) -> None:
        """Lengthen the delay after a failure."""
        pause = min(2 * self._kept[root][0], MAX_RETRY_S) if root in self._kept else FIRST_RETRY_S
        self._kept[root] = (pause, self._clock() + pause)

    def forget(self, root: str) -> None:
        self._kept.pop(root, None)


class Mirror:
    """Writes the memories of every worktree on this machine whose runs changed."""

    def __init__(
        self, store: Store, protocols: Protocols, serena: Serena, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._protocols = protocols
        self._serena = serena
        self._read_to: int | None = None
        self._best, self._any = RetryDelays(clock), RetryDelays(clock)
        self._stepping = asyncio.Lock()

    async def step(self) -> None:
        """Write what is due. Called repeatedly; does nothing if nothing changed."""
        async with self._stepping:
            await self._note_changes()
            for entry in await self._store.read(mirror_queries.unfinished):
                delays = self._any if entry.behind else self._best
                if delays.over(entry.root):
                    await self._follow(entry)

    async def health(self) -> list[Entry]:
        """Return where the memories of each worktree on this machine are, and their last failure."""
        entries = await self._store.read(mirror_queries.entries)
        return [entry for entry in entries if await _on_this_machine(entry.root) is not None]

    async def _note_changes(self) -> None:
        seen = self._read_to
        if seen is None:
            seen = await self._store.read(mirror_queries.last_noted)
        read_to, changed = await self._store.read(lambda tx: mirror_queries.changed_since(tx, seen))
        if changed:
            await self._store.write(lambda tx: mirror_queries.note(tx, changed))
        self._read_to = read_to

    async def _follow(self, entry: Entry) -> None:
        root = entry.root
        worktree = await _on_this_machine(root)
        if worktree is None:
            return  # on PostgreSQL, the daemon of the machine that has it mirrors it
        try:
            records = await self._protocols.records(root)
            place, failure = await self._mirror(worktree, entry, records)
        except (HoldfastError, UnreadableInside, OSError) as error:
            self._any.lengthen(root)
            problem = str(error)
            logger.warning("the memories of %s could not be written: %s", root, problem)
            await self._store.write(lambda tx: mirror_queries.failed(tx, root, problem))
            return
        self._any.forget(root)
        await self._store.write(lambda tx: mirror_queries.mirrored(tx, root, entry.wanted, place, failure))

    async def _mirror(
        self, worktree: Path, entry: Entry, records: Sequence[RunRecord]
    ) -> tuple[MemoryLocation, str | None]:
        """Write the memories; return where they went, and why not to a better location."""
        if not records:
            return MemoryLocation.NONE, None
        place, failure = await self._through_serena(worktree, entry, records)
        if place is None and await in_time(memory_files.is_folder, worktree, memory_files.SERENA_FOLDER):
            place = MemoryLocation.FILES
            foreign = await self._write(memory_files.FileMemories(worktree), entry.root, records)
            failure = failure or foreign
        if place is None and await in_time(memory_files.is_folder, worktree, SESSIONS):
            place = MemoryLocation.STATE_FILE
            foreign = await self._write_state(worktree, entry.root, records)
            failure = failure or foreign
        elif entry.place == MemoryLocation.STATE_FILE:  # outdated now; it would contradict the memories
            await asyncio.to_thread(memory_files.delete_file, worktree, STATE_JSON)
        if failure is None:
            self._best.forget(entry.root)
        elif self._best.over(entry.root):
            self._best.lengthen(entry.root)
        return place or MemoryLocation.NONE, failure

    async def _through_serena(
        self, worktree: Path, entry: Entry, records: Sequence[RunRecord]
    ) -> tuple[MemoryLocation | None, str | None]:
        if not self._best.over(entry.root):
            return None, entry.failure
        try:
            kept = await self._serena(worktree, await self._protocols.trusts(entry.root))
            return (
                (None, None) if kept is None else (MemoryLocation.SERENA, await self._write(kept, entry.root, records))
            )
        except SerenaTrouble as trouble:
            return None, trouble.message

    async def _write(self, kept: Memories, root: str, records: Sequence[RunRecord]) -> str | None:
        """Write the three memories; return the failure if another tool's state is in the way."""
        await kept.write(memories.HISTORY, memories.history(records))
        await kept.write(memories.VIOLATIONS_LOG, memories.violations_log(records))
        there = await kept.read(memories.CURRENT_STATE)
        state = await in_time(memories.read_current_state, there) if there is not None else None
        active = _active(records)
        if state is not None and not await self._knows(root, state):
            return _in_the_way(memories.CURRENT_STATE, state) if active else None
        if active is not None:
            await kept.write(memories.CURRENT_STATE, memories.current_state(active))
        elif there is not None:
            await kept.delete(memories.CURRENT_STATE)
        return None

    async def _write_state(self, worktree: Path, root: str, records: Sequence[RunRecord]) -> str | None:
        there = await in_time(memory_files.read_text, worktree, STATE_JSON)
        state = await in_time(memories.read_state_json, there) if there is not None else None
        if state is not None and not await self._knows(root, state):
            return _in_the_way(STATE_JSON, state) if _active(records) else None
        text = memories.state_json(records)
        if text != there:
            await asyncio.to_thread(memory_files.write_text, worktree, STATE_JSON, text)
        return None

    async def _knows(self, root: str, state: ImportedState) -> bool:
        return await self._store.read(lambda tx: mirror_queries.knows(tx, root, state.session_id))


async def foreign_state(worktree: Path) -> ImportedState | None:
    """Read the session state found in the worktree, to be imported before the mirror writes its own."""
    for relative, read in ((CURRENT_STATE_FILE, memories.read_current_state), (STATE_JSON, memories.read_state_json)):
        try:
            text = await in_time(memory_files.read_text, worktree, relative)
            state = await in_time(read, text) if text is not None else None
        except (UnreadableInside, OSError) as error:
            logger.warning("could not import the session state in %s: %s", worktree, error)
            continue
        if state is not None:
            return state
    return None


def _active(records: Sequence[RunRecord]) -> RunRecord | None:
    return next((record for record in records if record.run.status == RunStatus.ACTIVE), None)


def _in_the_way(where: str, state: ImportedState) -> str:
    return (
        f"{where} holds session {state.session_id[:64]!r}, which Holdfast does not know, so it was not overwritten."
        " Move it away to have the current session written there."
    )


async def _on_this_machine(root: str) -> Path | None:
    worktree = path_of(root)
    return worktree if worktree is not None and await in_time(worktree.is_dir) else None
