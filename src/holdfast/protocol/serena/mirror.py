"""The mirror: after each commit, a background loop brings the memories of a worktree up to date with its runs.

They are files in Serena's folder, where Serena sees them at once, otherwise the state file next to the session logs,
otherwise nowhere, and are kept out of git. The store is authoritative: what cannot be written is retried and shown by
`holdfast doctor`, and a new daemon writes again what the last one may not have come to. A current state of another
tool is kept under another name.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import posixpath
import time
from collections.abc import Callable
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.files import write_private
from holdfast.files.in_time import in_time
from holdfast.files.inside import UnreadableInside, is_folder, read_inside, real_path
from holdfast.git.directory import NoRepository, keep_out_of_git
from holdfast.identity.project import path_of
from holdfast.protocol import memories, queries
from holdfast.protocol.protocols import SESSIONS
from holdfast.protocol.runs import RunRecord, RunStatus
from holdfast.protocol.service import Protocols
from holdfast.store import Store

RETRY_S = 30.0
MAX_MEMORY_BYTES = 600_000
"""150,000 characters of up to four bytes."""

SERENA_FOLDER = ".serena"
MEMORIES = f"{SERENA_FOLDER}/memories"
CURRENT_STATE_FILE = f"{MEMORIES}/{memories.CURRENT_STATE}.md"
HISTORY_FILE = f"{MEMORIES}/{memories.HISTORY}.md"
VIOLATIONS_FILE = f"{MEMORIES}/{memories.VIOLATIONS_LOG}.md"
STATE_JSON = f"{SESSIONS}/.session-state.json"
KEPT = "kept"
LIVE = (
    *(CURRENT_STATE_FILE, HISTORY_FILE, VIOLATIONS_FILE, f"{MEMORIES}/.session-*"),
    *(f"{MEMORIES}/{memories.CURRENT_STATE}.{KEPT}-*", f"{SESSIONS}/.session-state.*", f"{SESSIONS}/..session-state.*"),
)
"""What is kept out of git, with the temporary names."""

logger = logging.getLogger(__name__)


class Mirror:
    """Writes the memories of every worktree on this machine whose runs changed."""

    def __init__(self, store: Store, protocols: Protocols, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._protocols = protocols
        self._clock = clock
        self._read_to: int | None = None
        self._due: dict[str, float] = {}
        """The worktrees to write, and not before when."""
        self.failures: dict[str, str] = {}
        """The worktrees whose memories could not be written, and why."""
        self._excluded: set[Path] = set()
        self._stepping = asyncio.Lock()

    async def step(self) -> None:
        """Write what is due. Called repeatedly; does nothing if nothing changed."""
        async with self._stepping:
            self._read_to, changed = await self._store.read(lambda tx: queries.changed_roots(tx, self._read_to))
            self._due |= dict.fromkeys(changed, 0.0)
            for root in [root for root, at in self._due.items() if self._clock() >= at]:
                await self._follow(root)

    async def _follow(self, root: str) -> None:
        worktree = path_of(root)
        if worktree is None or not await in_time(worktree.is_dir):
            # On PostgreSQL, the daemon of the machine that has it mirrors it.
            self._due[root] = self._clock() + RETRY_S
            return
        try:
            await self._mirror(worktree, root, await self._protocols.records(root))
        except (HoldfastError, UnreadableInside, OSError) as error:
            self._due[root] = self._clock() + RETRY_S
            self.failures[root] = str(error)
            logger.warning("the memories of %s could not be written: %s", root, error)
            return
        del self._due[root]
        self.failures.pop(root, None)

    async def _mirror(self, worktree: Path, root: str, records: list[RunRecord]) -> None:
        if not records:
            return
        active = records[0] if records[0].run.status == RunStatus.ACTIVE else None
        if await in_time(is_folder, worktree, SERENA_FOLDER):
            await self._keep_out_of_git(worktree)
            await self._put(worktree, root, HISTORY_FILE, memories.history(records))
            await self._put(worktree, root, VIOLATIONS_FILE, memories.violations_log(records))
            await self._put(worktree, root, CURRENT_STATE_FILE, memories.current_state(active) if active else None)
            await self._put(worktree, root, STATE_JSON, None)  # it would contradict the memories
        elif await in_time(is_folder, worktree, SESSIONS):
            await self._keep_out_of_git(worktree)
            await self._put(worktree, root, STATE_JSON, memories.state_json(records))

    async def _put(self, worktree: Path, root: str, path: str, text: str | None) -> None:
        """Write a memory, or remove it; the state of a session that is not ours is kept, or left alone."""
        content = await in_time(read_inside, worktree, path, MAX_MEMORY_BYTES)
        there = None if content is None else content.decode("utf-8", "replace")
        if there == text:  # an unchanged file must not show up as modified
            return
        session = memories.session_named(there) if there and path in (CURRENT_STATE_FILE, STATE_JSON) else None
        foreign = session and not await self._store.read(lambda tx: queries.knows(tx, root, session))
        if not foreign or text is not None:
            await asyncio.to_thread(_write, worktree, path, text, there if foreign else None)

    async def _keep_out_of_git(self, worktree: Path) -> None:
        if worktree in self._excluded:
            return
        for name in LIVE:
            try:
                await asyncio.to_thread(keep_out_of_git, worktree, name)
            except NoRepository:
                return
        self._excluded.add(worktree)


def _write(worktree: Path, path: str, text: str | None, foreign: str | None) -> None:
    """Write or remove a file of a worktree; a link is replaced and not followed. Its folder is created."""
    folder = real_path(worktree, posixpath.dirname(path))
    target = folder / posixpath.basename(path)
    if text is None:
        target.unlink(missing_ok=True)
        return
    folder.mkdir(exist_ok=True)
    if foreign is not None:
        mark = hashlib.sha256(foreign.encode("utf-8", "replace")).hexdigest()[:8]
        _keep(target, target.with_name(f"{target.stem}.{KEPT}-{mark}{target.suffix}"))
    write_private(target, text.encode("utf-8", "replace"), mode=0o666)


def _keep(target: Path, kept: Path) -> None:
    """Give a file a second name, so that there is one under its own at any time."""
    try:
        os.link(target, kept, follow_symlinks=False)
    except FileExistsError:  # kept before, by a daemon that was killed then
        return
    except OSError:  # this file system has no links
        target.rename(kept)
