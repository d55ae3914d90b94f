"""Where an active run stands, and how it is found."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.project import Root, path_of
from holdfast.protocol import definition, queries
from holdfast.protocol.errors import NoProject, NoRun, UnknownGate
from holdfast.protocol.in_time import in_time
from holdfast.protocol.model import WORKING, Gate, Protocol, Standing
from holdfast.protocol.project.settings import ProjectProtocol, read_project
from holdfast.protocol.runs import Run
from holdfast.protocol.worktree import Worktree, worktree_of
from holdfast.quoting import in_quotes
from holdfast.store import Store, Tx
from holdfast.store.calls import CallKey, require_unanswered

LONGEST_PATH = 4096


@dataclass(frozen=True, slots=True)
class Situation:
    """An active run, and where it stands."""

    run: Run
    protocol: Protocol
    standing: Standing
    project: ProjectProtocol
    worktree: Path
    key: CallKey | None = None
    """Of the call that looks at it; each write of that call makes sure that it was not answered before."""

    @property
    def at_work(self) -> bool:
        """Whether the start of the session lies behind."""
        order = self.protocol.phases
        return order.index(self.standing.at) >= order.index(WORKING)

    def moved(self, standing: Standing) -> Situation:
        """The same run, standing elsewhere."""
        return replace(self, standing=standing)

    def gate(self, name: str) -> Gate:
        """The gate of this name; raises UnknownGate."""
        found = self.protocol.gate(name)
        if found is None:
            names = ", ".join(one.name for one in self.protocol.gates)
            raise UnknownGate(f"There is no gate {in_quotes(name, 64)}.", recovery=f"Gates: {names}; or ALL.")
        return found


class Situations:
    """Finds active runs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def worktree(self, root: Root | None) -> Worktree:
        """The worktree of a caller's root; raises NoProject."""
        path = path_of(root.uri) if root else None
        found = await in_time(worktree_of, path) if path else None
        if found is None:
            raise NoProject(
                "The call names no project directory on this machine.",
                recovery="Start the agent in the project's directory, or bind it: init bind_root with mcpRootUri.",
            )
        return found

    async def at(self, cwd: str) -> Worktree | None:
        """The worktree that a directory is in."""
        if not cwd.startswith("/") or "\0" in cwd or len(os.fsencode(cwd)) > LONGEST_PATH:
            return None
        return await in_time(worktree_of, Path(cwd))

    async def of(self, root: Root | None, key: CallKey | None = None) -> Situation:
        """The active run of a caller's project; raises NoRun, or AlreadyAnswered for a repeated call."""
        worktree = await self.worktree(root)
        found = await self.active(worktree, key)
        if found is None:
            raise NoRun("There is no active session in this project.", recovery="session_start begins one.")
        return found

    async def active(self, worktree: Worktree, key: CallKey | None = None) -> Situation | None:
        """The active run of a worktree, looked at for this call; raises AlreadyAnswered if it is repeated."""

        def read(tx: Tx) -> tuple[Run, Standing] | None:
            require_unanswered(tx, key, reads_only=True)
            run = queries.active(tx, worktree.root)
            if run is None or tx.now() - run.touched_at > queries.ORPHANED_AFTER_MS:
                return None
            return run, queries.standing(tx, run)

        found = await self._store.read(read)
        if found is None:
            return None
        run, standing = found
        project = await in_time(read_project, worktree.path)
        return Situation(run, definition.loads(run.definition), standing, project, worktree.path, key)
