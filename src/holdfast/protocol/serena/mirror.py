"""The mirror: after each commit, a background loop brings the memories of a worktree up to date with its runs.

They are files in Serena's folder, where Serena sees them at once, otherwise the state file next to the session logs,
otherwise nowhere, and are kept out of git. The store is authoritative; a mirror that is behind, or that finds another
tool's state in its way, is retried and shown by `holdfast doctor`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.files.in_time import in_time
from holdfast.files.inside import UnreadableInside
from holdfast.git.directory import NoRepository, keep_out_of_git
from holdfast.identity.project import path_of
from holdfast.protocol import memories
from holdfast.protocol.memories import ImportedState
from holdfast.protocol.protocols import SESSIONS
from holdfast.protocol.runs import RunRecord, RunStatus
from holdfast.protocol.serena import memory_files, mirror_queries
from holdfast.protocol.serena.memory_files import MEMORIES, delete_file, is_folder, read_text, write_text
from holdfast.protocol.serena.mirror_queries import Entry
from holdfast.protocol.service import Protocols
from holdfast.store import Store

RETRY_S = 30.0

CURRENT_STATE_FILE = f"{MEMORIES}/{memories.CURRENT_STATE}.md"
HISTORY_FILE = f"{MEMORIES}/{memories.HISTORY}.md"
VIOLATIONS_FILE = f"{MEMORIES}/{memories.VIOLATIONS_LOG}.md"
STATE_JSON = f"{SESSIONS}/.session-state.json"
LIVE = (CURRENT_STATE_FILE, HISTORY_FILE, VIOLATIONS_FILE, f"{MEMORIES}/.session-*.tmp")
"""What is kept out of git, with the temporary names."""

logger = logging.getLogger(__name__)


class MemoryLocation(StrEnum):
    """Where the memories of a worktree are kept."""

    FILES = "files"
    STATE_FILE = "state-file"
    NONE = "none"


class Mirror:
    """Writes the memories of every worktree on this machine whose runs changed."""

    def __init__(self, store: Store, protocols: Protocols, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._protocols = protocols
        self._clock = clock
        self._read_to: int | None = None
        self._not_before: dict[tuple[str, bool], float] = {}
        """When to try again: what could not be written, and what another tool's state is in the way of."""
        self._excluded: set[tuple[Path, str]] = set()
        self._stepping = asyncio.Lock()

    async def step(self) -> None:
        """Write what is due. Called repeatedly; does nothing if nothing changed."""
        async with self._stepping:
            await self._note_changes()
            for entry in await self._store.read(mirror_queries.unfinished):
                if self._clock() >= self._not_before.get((entry.root, entry.behind), 0.0):
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
            place, failure = await self._mirror(worktree, entry, await self._protocols.records(root))
        except (HoldfastError, UnreadableInside, OSError) as error:
            problem = str(error)
            self._not_before[root, True] = self._clock() + RETRY_S
            logger.warning("the memories of %s could not be written: %s", root, problem)
            await self._store.write(lambda tx: mirror_queries.failed(tx, root, problem))
            return
        self._not_before[root, False] = self._clock() + RETRY_S
        await self._store.write(lambda tx: mirror_queries.mirrored(tx, root, entry.wanted, place, failure))

    async def _mirror(
        self, worktree: Path, entry: Entry, records: Sequence[RunRecord]
    ) -> tuple[MemoryLocation, str | None]:
        """Write the memories; return where they went, and what is in the way of the current state."""
        if not records:
            return MemoryLocation.NONE, None
        if await in_time(is_folder, worktree, memory_files.SERENA_FOLDER):
            await self._keep_out_of_git(worktree, *LIVE)
            await _write(worktree, HISTORY_FILE, memories.history(records))
            await _write(worktree, VIOLATIONS_FILE, memories.violations_log(records))
            active = _active(records)
            text = memories.current_state(active) if active is not None else None
            failure = await self._write_state(
                worktree, entry.root, CURRENT_STATE_FILE, memories.read_current_state, text, active
            )
            if entry.place == MemoryLocation.STATE_FILE:  # outdated now; it would contradict the memories
                await asyncio.to_thread(delete_file, worktree, STATE_JSON)
            return MemoryLocation.FILES, failure
        if await in_time(is_folder, worktree, SESSIONS):
            await self._keep_out_of_git(worktree, STATE_JSON, f"{SESSIONS}/.*.tmp")
            failure = await self._write_state(
                worktree,
                entry.root,
                STATE_JSON,
                memories.read_state_json,
                memories.state_json(records),
                _active(records),
            )
            return MemoryLocation.STATE_FILE, failure
        return MemoryLocation.NONE, None

    async def _write_state(
        self,
        worktree: Path,
        root: str,
        path: str,
        read: Callable[[str], ImportedState | None],
        text: str | None,
        active: RunRecord | None,
    ) -> str | None:
        """Write the current state, or remove it; return the failure if another tool's state is in the way."""
        there = await in_time(read_text, worktree, path)
        state = await in_time(read, there) if there is not None else None
        if state is not None and not await self._knows(root, state):
            return _in_the_way(path, state) if active else None
        if text is None:
            await asyncio.to_thread(delete_file, worktree, path)
        elif text != there:
            await asyncio.to_thread(write_text, worktree, path, text)
        return None

    async def _keep_out_of_git(self, worktree: Path, *names: str) -> None:
        for name in names:
            if (worktree, name) not in self._excluded:
                try:
                    await asyncio.to_thread(keep_out_of_git, worktree, name)
                except NoRepository:
                    return
                self._excluded.add((worktree, name))

    async def _knows(self, root: str, state: ImportedState) -> bool:
        return await self._store.read(lambda tx: mirror_queries.knows(tx, root, state.session_id))


async def foreign_state(worktree: Path) -> ImportedState | None:
    """Read the session state found in the worktree, to be imported before the mirror writes its own."""
    for relative, read in ((CURRENT_STATE_FILE, memories.read_current_state), (STATE_JSON, memories.read_state_json)):
        try:
            text = await in_time(read_text, worktree, relative)
            state = await in_time(read, text) if text is not None else None
        except (UnreadableInside, OSError) as error:
            logger.warning("could not import the session state in %s: %s", worktree, error)
            continue
        if state is not None:
            return state
    return None


async def _write(worktree: Path, path: str, text: str) -> None:
    if await in_time(read_text, worktree, path) != text:  # an unchanged file must not show up as modified
        await asyncio.to_thread(write_text, worktree, path, text)


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
