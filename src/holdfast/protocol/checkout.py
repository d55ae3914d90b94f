"""Validates a checkout without a session of its own, as CI has it: by the newest session log, git and the files."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from holdfast.git.state import Git, GitFault
from holdfast.identity.worktree import Worktree
from holdfast.protocol.checks.files import logged_numbers
from holdfast.protocol.checks.findings import shown
from holdfast.protocol.checks.globs import find
from holdfast.protocol.model import CheckKind, Standing, Status, run_id
from holdfast.protocol.project.settings import read_project
from holdfast.protocol.protocols import SESSIONS
from holdfast.protocol.results import CheckedGate, Validation
from holdfast.protocol.runs import Run, Scene, Verdict
from holdfast.protocol.steps import Verifier

NOT_IN_FILES = frozenset(
    {CheckKind.FILE_READ, CheckKind.TOOL_CALLED, CheckKind.COMMAND, CheckKind.SERENA, CheckKind.CLAIM}
)
"""Checks that files and git do not answer; they are known only where the session ran."""


async def validate_checkout(worktree: Worktree, checks: Verifier, *, only_before_work: bool) -> Validation | None:
    """Check what can be seen of the session with the newest log; None if the checkout has no log."""
    logs = await asyncio.to_thread(logged_numbers, worktree.path)
    project = await asyncio.to_thread(read_project, worktree.path)
    if not logs or project.faults or not worktree.is_git:
        return None
    name = run_id(*max(logs))
    start = await _parent_of_log(worktree.path, name)
    protocol = project.protocol
    run = Run(0, name, worktree.root, worktree.project, protocol.name, definition="{}", starting_commit=start)
    scene = Scene(worktree.path, run, (), trusted=False)
    checked = []
    for gate in protocol.gates_until(only_before_work):
        hidden = any(check.kind in NOT_IN_FILES for check in gate.checks)
        skipped = Verdict(Status.SKIPPED, "it can be verified only where the session ran")
        checked.append(CheckedGate(gate, skipped if hidden else await checks.verify(gate, scene), Standing()))
    return Validation(run, tuple(checked))


async def _parent_of_log(worktree: Path, name: str) -> str | None:
    """Return the commit before the one that added a session's log; None if it is not in the history."""
    git = Git(worktree)
    logs = await asyncio.to_thread(find, worktree, f"{SESSIONS}/{name}*.md")
    if not logs:
        raise GitFault(f"{shown(name)} has no log.")
    answer = await git.ask("log", "--diff-filter=A", "--no-show-signature", "--format=%P", "-n", "1", "--", *logs)
    return next(iter(os.fsdecode(answer.output).split()), None)
