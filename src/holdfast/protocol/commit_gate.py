"""Commits before their time: git refuses them while a run is blocked, and those that came through are found."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.files.in_time import in_time
from holdfast.git.state import Git, GitFault, NewCommit, Tips
from holdfast.protocol import definition
from holdfast.protocol.model import Gate
from holdfast.protocol.project.settings import Enforcement
from holdfast.protocol.runs import ActiveRun, Run
from holdfast.text.quoting import error_text, in_quotes, named

SHORT = 10
"""Digits of a commit's id."""
MAX_HOW = 120


class CommitGate:
    """Keeps git's hook in the repositories of one data directory's runs as the runs are."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._turns: dict[Path, asyncio.Lock] = {}
        self.off: dict[str, str] = {}
        """Worktrees of runs that enforce, where git does not call the hook, and why."""

    async def settle(self, worktree: Path, load: Callable[[], Awaitable[ActiveRun | None]] | None) -> None:
        """Have git refuse new commits in a worktree, or let them through, as its active run asks for.

        Loads the run when it is its turn, so that an older state never comes after a newer one; without `load` there is
        none. What fails is in `off`: the run is stored in any case, and the next touch tries again.
        """
        why: str | None
        async with self._turns.setdefault(worktree, asyncio.Lock()):
            try:
                why = await self._settle(worktree, await load() if load else None)
            except OSError as failure:
                why = f"its hook cannot be written: {failure.strerror}."
            except HoldfastError as failure:
                why = str(failure)
        if why is None:
            self.off.pop(str(worktree), None)
        else:
            self.off[str(worktree)] = why

    async def _settle(self, worktree: Path, active: ActiveRun | None) -> str | None:
        from holdfast.git.gate import close, open_again  # imported late: most projects enforce nothing

        gate = active.commits_wait_for if active is not None else None
        if active is None or gate is None or active.enforcement is not Enforcement.ENFORCE:
            await in_time(open_again, worktree, self._home)
            return None
        message = f"Holdfast: {error_text(active.too_early(gate))}"
        return await in_time(close, worktree, self._home, message, active.run.touched_at / 1000)


async def early_commits(worktree: Path, before: Tips, gate: Gate) -> tuple[list[str], Tips | None]:
    """Return a violation for each commit that came to HEAD or a branch, and what to compare with from then on."""
    git = Git(worktree)
    try:
        now = await git.tips()
        same = (now.head, now.branches) == (before.head, before.branches)
        found = [] if same else await git.new_commits(before, now)
    except GitFault as fault:  # a repository that is broken for a moment would hide what was done in it
        unknown = f"git cannot say whether there was one ({in_quotes(str(fault), MAX_HOW)})"
        return [f"{gate.level} {gate.name} before a commit: {unknown}"], None
    # What is on other branches stays as it was: a new commit could be hidden among them.
    return [_told(one, gate) for one in found], replace(now, remotes=before.remotes, elsewhere=before.elsewhere)


async def untouched(worktree: Path, run: Run) -> bool:
    """Return whether nothing was done in a run's worktree since the run began."""
    begun = definition.begun_with(run.definition).worktree
    return bool(begun) and begun == await Git(worktree).digest(run.starting_commit)


def _told(commit: NewCommit, gate: Gate) -> str:
    moved = f"{named(commit.ref)} went from {(commit.before or 'nothing')[:SHORT]} to {commit.after[:SHORT]}"
    if commit.how.startswith("pull"):
        return f"{gate.level} {gate.name} before a commit: {moved} by git pull"
    how = f" ({in_quotes(commit.how, MAX_HOW)})" if commit.how else ""
    return f"{gate.level} {gate.name} before a commit: {moved}{how}"
