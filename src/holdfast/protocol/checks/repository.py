"""Checks that ask git: branch and HEAD, what was changed, what is committed."""

from __future__ import annotations

import asyncio
import os
import stat

from holdfast.git.state import Git, GitFault
from holdfast.protocol.checks.docs_only import mode
from holdfast.protocol.checks.files import session_log
from holdfast.protocol.checks.findings import Finding, failed, named, passed, shown, skipped
from holdfast.protocol.checks.globs import before_magic, is_pattern, matches
from holdfast.protocol.commit_gate import untouched
from holdfast.protocol.model import Check, CheckKind, Status
from holdfast.protocol.protocols import LOG_NAME, SESSIONS
from holdfast.protocol.runs import Scene

MAX_CLOCK_SKEW_MS = 5 * 60 * 1000
"""How far the clocks of the store and the committer may differ."""


async def git_state(scene: Scene) -> Finding:
    """Check that the branch and the starting commit are known."""
    git = Git(scene.worktree)
    state = await git.state()
    if state.problem:
        return failed(state.problem.rstrip("."))
    start = scene.run.starting_commit
    if start is not None and not await git.exists(start):
        return failed(f"the starting commit {start[:12]} is not in this repository")
    where = f"branch {shown(state.branch)}" if state.branch else "detached HEAD"
    at = f"at {state.head[:12]}" if state.head else "before its first commit"
    return passed(f"{where} {at}, " + (f"{len(state.dirty)} uncommitted" if state.dirty else "clean"))


async def not_on_branch(check: Check, scene: Scene) -> Finding:
    """Check that HEAD is on none of these branches."""
    state = await Git(scene.worktree).state()
    if state.problem:
        return failed(state.problem.rstrip("."))
    if state.branch in check.names:
        return failed(f"the session is on branch {shown(state.branch)}, where the protocol forbids it")
    return passed(f"on branch {shown(state.branch)}" if state.branch else "detached HEAD")


async def at_start(scene: Scene, *patterns: str) -> dict[str, bool]:
    """Return what in the starting commit matches one of these paths or patterns, or is in such a folder.

    Each with whether it is a link.
    """
    start = scene.run.starting_commit
    git = Git(scene.worktree)
    commit = await git.resolve(start) if start is not None else None
    if start is not None and commit is None:
        raise GitFault(f"The starting commit {start[:12]} is not in this repository.")
    found: dict[str, bool] = {}
    for pattern in patterns if commit is not None else ():
        folder = before_magic(pattern) if is_pattern(pattern) else pattern.rstrip("/")
        listed = await git.ask("ls-tree", "-r", "-z", commit or "", "--", folder)
        entries = [os.fsdecode(entry).partition("\t") for entry in listed.output.split(b"\0") if entry]
        fits = [(name, kind) for kind, _, name in entries if not is_pattern(pattern) or matches(pattern, name)]
        found |= {name: kind.startswith("120") for name, kind in fits}
    return found


async def docs_changed(check: Check, scene: Scene) -> Finding:
    """Check that each of the paths was changed since the run began."""
    changed = await Git(scene.worktree).changed_since(scene.run.starting_commit)
    seen: list[str] = []
    missing: list[str] = []
    for pattern in check.paths:
        if pattern.startswith(f"{SESSIONS}/") or LOG_NAME in pattern:
            # A log is named after its run: another run's log does not count for this one.
            place = pattern if LOG_NAME in pattern else SESSIONS
            log = await asyncio.to_thread(session_log, Check(CheckKind.SESSION_LOG, paths=(place,)), scene)
            (seen if log.status is Status.PASS else missing).append(log.text)
            continue
        named_by = [path for path in changed if matches(pattern, path)]
        files = (path for path in named_by if mode(scene.worktree / path) == stat.S_IFREG)
        file = await asyncio.to_thread(next, files, None)
        if file is None and check.optional and not await at_start(scene, pattern):
            seen.append(f"{shown(pattern)} was not there")
        elif file is None:
            missing.append(f"{shown(pattern)} was not changed since the session began")
        else:
            seen.append(f"{shown(file)} was changed")
    return failed("; ".join(missing)) if missing else passed(", ".join(seen))


async def committed(scene: Scene) -> Finding:
    """Check that HEAD moved since the run began, and that the tree is clean."""
    git = Git(scene.worktree)
    state = await git.state()
    if state.problem:
        return failed(state.problem.rstrip("."))
    if await untouched(scene.worktree, scene.run):
        return skipped("nothing was changed since the session began")
    if state.head is None:
        return failed("the repository has no commit yet")
    wrong = await _not_moved(git, state.head, scene)
    if state.dirty:
        wrong.append(f"not committed: {named(state.dirty)}")
    return failed("; ".join(wrong)) if wrong else passed(f"commit {state.head[:12]}, tree clean")


async def _not_moved(git: Git, head: str, scene: Scene) -> list[str]:
    starting_commit = scene.run.starting_commit
    if starting_commit is None:
        return []
    start = await git.resolve(starting_commit)
    if start is None:
        return [f"the starting commit {starting_commit[:12]} is not in this repository"]
    if await git.is_ancestor(head, start):
        return [f"HEAD is at {head[:12]}, with no commit since the session began"]
    if await git.is_ancestor(start, head):
        return []
    # An amended or rebased commit does not descend from the start. Nor does an old one that was just checked out.
    made_at = await git.committed_at(head)
    if made_at + MAX_CLOCK_SKEW_MS < scene.run.started_at:
        return [f"HEAD is at {head[:12]}, which was committed before the session began"]
    return []
