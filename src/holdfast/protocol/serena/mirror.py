"""The mirror: after each commit the memories of a worktree follow its runs, apart from any request.

They go through Serena where it answers, else into its folder as files, else into the state file beside the session
logs, else nowhere. The store is what counts; a mirror that is behind or went to second best is tried again and shows
in `holdfast doctor`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from holdfast.errors import HoldfastError
from holdfast.project import path_of
from holdfast.protocol import memories
from holdfast.protocol.in_time import in_time
from holdfast.protocol.inside import UnreadableInside
from holdfast.protocol.memories import ImportedState
from holdfast.protocol.runs import RunStatus, RunView
from holdfast.protocol.serena import mirror_queries
from holdfast.protocol.serena.memory_files import (
    MEMORIES,
    SERENA_FOLDER,
    SESSIONS,
    STATE_FILE,
    FileMemories,
    delete_file,
    is_folder,
    read_text,
    write_text,
)
from holdfast.protocol.serena.mirror_queries import Entry
from holdfast.protocol.serena.session import SerenaTrouble
from holdfast.protocol.serena.state_file import read_state_json, state_json
from holdfast.store import Store

FIRST_PAUSE_S = 5.0
LONGEST_PAUSE_S = 1800.0

CURRENT_STATE_FILE = f"{MEMORIES}/{memories.CURRENT_STATE}.md"
STATE_JSON = f"{SESSIONS}/{STATE_FILE}"

logger = logging.getLogger(__name__)


class Place(StrEnum):
    """Where the memories of a worktree are."""

    SERENA = "serena"
    FILES = "files"
    STATE_FILE = "state-file"
    NONE = "none"


class Memories(Protocol):
    """Somewhere to keep memories by name."""

    async def read(self, name: str) -> str | None:
        """A memory's text; None when there is none."""
        ...

    async def write(self, name: str, text: str) -> None:
        """Give a memory this text."""
        ...

    async def delete(self, name: str) -> None:
        """Remove a memory, if it is there."""
        ...


class Keeper(Protocol):
    """Who may keep the memories of a worktree: Serena."""

    async def memories(self, worktree: Path, trusted: bool) -> Memories | None:
        """The worktree's memories; None where it cannot keep them. Raises SerenaTrouble where it should but fails."""
        ...


class Runs(Protocol):
    """What the mirror asks of the protocol's service."""

    async def views(self, root: str, limit: int = memories.LATEST) -> list[RunView]:
        """The runs of a worktree, the active one first, then the newest."""
        ...

    async def trusts(self, root: str) -> bool:
        """Whether the owner trusts the worktree's present content."""
        ...


class Pauses:
    """How long to leave alone what failed; longer each time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[float, float]] = {}

    def over(self, root: str) -> bool:
        """Whether it may be tried again."""
        return self._clock() >= self._kept.get(root, (0.0, 0.0))[1]

    def lengthen(self, root: str) -> None:
        """It failed again."""
        pause = min(2 * self._kept[root][0], LONGEST_PAUSE_S) if root in self._kept else FIRST_PAUSE_S
        self._kept[root] = (pause, self._clock() + pause)

    def forget(self, root: str) -> None:
        """It worked."""
        self._kept.pop(root, None)


class Mirror:
    """Writes the memories of every worktree on this machine whose runs changed."""

    def __init__(
        self, store: Store, runs: Runs, serena: Keeper, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._runs = runs
        self._serena = serena
        self._read_to: int | None = None
        self._best, self._any = Pauses(clock), Pauses(clock)
        self._stepping = asyncio.Lock()

    async def step(self) -> None:
        """Write what is due. Called again and again; does nothing when nothing changed."""
        async with self._stepping:
            await self._note_changes()
            for entry in await self._store.read(mirror_queries.unfinished):
                if self._due(entry):
                    await self._follow(entry)

    async def health(self) -> list[dict[str, Any]]:
        """Where the memories of each worktree on this machine are, and what is wrong with them."""
        found = []
        for entry in await self._store.read(mirror_queries.entries):
            if await _on_this_machine(entry.root) is not None:
                told = {"root": entry.root, "place": entry.place, "failure": entry.failure}
                known = {name: value for name, value in told.items() if value is not None}
                found.append({**known, "behind": entry.wanted > entry.done})
        return found

    async def _note_changes(self) -> None:
        seen = self._read_to
        if seen is None:
            seen = await self._store.read(mirror_queries.last_noted)
        read_to, changed = await self._store.read(lambda tx: mirror_queries.changed_since(tx, seen))
        if changed:
            await self._store.write(lambda tx: mirror_queries.note(tx, changed))
        self._read_to = read_to

    def _due(self, entry: Entry) -> bool:
        pauses = self._any if entry.wanted > entry.done else self._best
        return pauses.over(entry.root)

    async def _follow(self, entry: Entry) -> None:
        root = entry.root
        worktree = await _on_this_machine(root)
        if worktree is None:
            return  # on PostgreSQL, the daemon that has it mirrors it
        try:
            views = await self._runs.views(root)
            place, failure = await self._mirror(worktree, entry, views)
        except (HoldfastError, UnreadableInside, OSError) as error:
            self._any.lengthen(root)
            told = str(error)
            logger.warning("the memories of %s could not be written: %s", root, told)
            await self._store.write(lambda tx: mirror_queries.failed(tx, root, told))
            return
        self._any.forget(root)
        await self._store.write(lambda tx: mirror_queries.mirrored(tx, root, entry.wanted, place, failure))

    async def _mirror(self, worktree: Path, entry: Entry, views: Sequence[RunView]) -> tuple[Place, str | None]:
        """Where the memories went, and why not to a better place."""
        if not views:
            return Place.NONE, None
        place, failure = await self._through_serena(worktree, entry, views)
        if place is None and await in_time(is_folder, worktree, SERENA_FOLDER):
            place, foreign = Place.FILES, await self._write(FileMemories(worktree), entry.root, views)
            failure = failure or foreign
        if place is None and await in_time(is_folder, worktree, SESSIONS):
            place, foreign = Place.STATE_FILE, await self._write_state(worktree, entry.root, views)
            failure = failure or foreign
        elif entry.place == Place.STATE_FILE:  # the memories have moved on; an old state would contradict them
            await asyncio.to_thread(delete_file, worktree, STATE_JSON)
        if failure is None:
            self._best.forget(entry.root)
        elif self._best.over(entry.root):
            self._best.lengthen(entry.root)
        return place or Place.NONE, failure

    async def _through_serena(
        self, worktree: Path, entry: Entry, views: Sequence[RunView]
    ) -> tuple[Place | None, str | None]:
        if not self._best.over(entry.root):
            return None, entry.failure
        try:
            kept = await self._serena.memories(worktree, await self._runs.trusts(entry.root))
            return (None, None) if kept is None else (Place.SERENA, await self._write(kept, entry.root, views))
        except SerenaTrouble as trouble:
            return None, trouble.message

    async def _write(self, kept: Memories, root: str, views: Sequence[RunView]) -> str | None:
        """Write the three memories; the failure that another's state is in the way of ours, if it is."""
        await kept.write(memories.HISTORY, memories.history(views))
        await kept.write(memories.VIOLATIONS_LOG, memories.violations_log(views))
        there = await kept.read(memories.CURRENT_STATE)
        state = await in_time(memories.read_current_state, there) if there is not None else None
        active = _active(views)
        if state is not None and not await self._knows(root, state):
            return _in_the_way(memories.CURRENT_STATE, state) if active else None
        if active is not None:
            await kept.write(memories.CURRENT_STATE, memories.current_state(active))
        elif there is not None:
            await kept.delete(memories.CURRENT_STATE)
        return None

    async def _write_state(self, worktree: Path, root: str, views: Sequence[RunView]) -> str | None:
        there = await in_time(read_text, worktree, STATE_JSON)
        state = await in_time(read_state_json, there) if there is not None else None
        if state is not None and not await self._knows(root, state):
            return _in_the_way(STATE_JSON, state) if _active(views) else None
        text = state_json(views)
        if text != there:
            await asyncio.to_thread(write_text, worktree, STATE_JSON, text)
        return None

    async def _knows(self, root: str, state: ImportedState) -> bool:
        return await self._store.read(lambda tx: mirror_queries.knows(tx, root, state.session_id))


async def foreign_state(worktree: Path) -> ImportedState | None:
    """The state of a session as it lies in the worktree, to be imported before the mirror writes its own there."""
    for relative, read in ((CURRENT_STATE_FILE, memories.read_current_state), (STATE_JSON, read_state_json)):
        try:
            text = await in_time(read_text, worktree, relative)
            state = await in_time(read, text) if text is not None else None
        except (UnreadableInside, OSError) as error:
            logger.warning("no state is imported from %s: %s", worktree, error)
            continue
        if state is not None:
            return state
    return None


def _active(views: Sequence[RunView]) -> RunView | None:
    return next((view for view in views if view.run.status == RunStatus.ACTIVE), None)


def _in_the_way(where: str, state: ImportedState) -> str:
    return (
        f"{where} holds session {state.session_id[:64]!r}, which Holdfast did not keep: it is left as it is."
        " Move it away to have the present session there."
    )


async def _on_this_machine(root: str) -> Path | None:
    worktree = path_of(root)
    return worktree if worktree is not None and await in_time(worktree.is_dir) else None
