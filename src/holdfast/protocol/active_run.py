"""The active run of a worktree, and how it is looked up."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.files.in_time import in_time
from holdfast.identity.project import Root, path_of
from holdfast.protocol import definition, model, queries
from holdfast.protocol.errors import NoProject, NoRun, UnknownGate
from holdfast.protocol.model import WORKING, Gate, Protocol, Standing
from holdfast.protocol.project.settings import ProjectProtocol, read_project
from holdfast.protocol.runs import Run
from holdfast.protocol.worktree import Worktree, worktree_of
from holdfast.store import Store, Tx
from holdfast.store.calls import CallKey, require_unanswered
from holdfast.text.quoting import in_quotes

MAX_PATH_BYTES = 4096
MOST_NAMED = 4


@dataclass(frozen=True, slots=True)
class ActiveRun:
    """An active run, its protocol and its current standing."""

    run: Run
    protocol: Protocol
    standing: Standing
    project: ProjectProtocol
    worktree: Path
    key: CallKey | None = None
    """Key of the call that loaded it; each write of that call first checks that the call was not answered before."""

    @property
    def at_work(self) -> bool:
        """Whether the run has passed the gates of the session start."""
        order = self.protocol.phases
        return order.index(self.standing.at) >= order.index(WORKING)

    def moved(self, standing: Standing) -> ActiveRun:
        """The same run with another standing."""
        return replace(self, standing=standing)

    def gate(self, name: str) -> Gate:
        """The gate of this name; raises UnknownGate."""
        found = self.protocol.gate(name)
        if found is None:
            names = ", ".join(one.name for one in self.protocol.gates)
            raise UnknownGate(f"There is no gate {in_quotes(name, 64)}.", recovery=f"Gates: {names}; or ALL.")
        return found

    def still_to_meet(self, longest: int) -> tuple[str, str]:
        """What blocks, and the first step against it in up to `longest` characters; each empty if there is none."""
        names = model.blocked_until(self.protocol, self.standing)
        if not names:
            return "", ""
        named = ", ".join(names[:MOST_NAMED]) + (" …" if len(names) > MOST_NAMED else "")
        steps = self.gate(names[0]).recovery
        return f"Gates to meet: {named}.", f" Next: {in_quotes(steps[0], longest)}" if steps else ""


class ActiveRuns:
    """Lookup of active runs."""

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
        if not cwd.startswith("/") or "\0" in cwd or len(os.fsencode(cwd)) > MAX_PATH_BYTES:
            return None
        return await in_time(worktree_of, Path(cwd))

    async def of(self, root: Root | None, key: CallKey | None = None) -> ActiveRun:
        """The active run of a caller's project; raises NoRun, or AlreadyAnswered for a repeated call."""
        worktree = await self.worktree(root)
        found = await self.active(worktree, key)
        if found is None:
            raise NoRun("There is no active session in this project.", recovery="Start one with session_start.")
        return found

    async def active(self, worktree: Worktree, key: CallKey | None = None) -> ActiveRun | None:
        """The active run of a worktree, loaded for this call; raises AlreadyAnswered if the call is repeated."""

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
        return ActiveRun(run, definition.loads(run.definition), standing, project, worktree.path, key)
