"""What git says was changed during a session, by whatever means.

Git runs so that nothing of the repository is executed, within limits, and never while an agent waits.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

from holdfast.briefing.ledger.keeping import kept_line
from holdfast.briefing.ledger.model import MAX_FILES, MAX_PATH, Changed, GitStart, GitView, Ledger
from holdfast.git.state import Git, GitFault, GitState

LIMIT_S = 5.0
MAX_DIRTY = 600
"""Uncommitted files at the start; with more, only the transcript is used."""
SPACE = 16_000
"""Bytes of the paths that are stored."""


async def start_of(project: Path, began_ms: int) -> GitStart | None:
    """Return the state of a project's worktree; None if there is none, or git does not answer."""
    top = await asyncio.to_thread(_top, project)
    if top is None:
        return None
    at = time.time_ns() // 1_000_000
    git = Git(top, timeout_s=LIMIT_S)
    state = await git.state()
    if state.problem or len(state.dirty) > MAX_DIRTY:
        return None
    try:
        moves = await git.moves()
    except GitFault:
        return None
    # What was changed between the session's start and this look belongs to the session.
    marks = await asyncio.to_thread(_marks, top, state.dirty)
    dirty = [mark for mark, changed_ms in marks.values() if changed_ms < began_ms]
    return GitStart(str(top), state.head, at, moves, dirty)


async def view_of(start: GitStart, ledger: Ledger) -> GitView | None:
    """Return what was changed since the start; None if git does not answer."""
    at = time.time_ns() // 1_000_000
    top = Path(start.top)
    git = Git(top, timeout_s=LIMIT_S)
    state = await git.state()
    if state.problem:
        return None
    try:
        fresh = await asyncio.to_thread(_fresh, top, state, start)
        changed = await _changed(git, start, state, fresh)
        spelled = _spelling(start.top, ledger.cwd)
        files = await asyncio.to_thread(_changed_files, top, spelled, changed, fresh)
        undecided = await _undecided(git, top, spelled, ledger, {one.path for one in files})
    except GitFault:
        return None
    return GitView(at, files, undecided)


async def _changed(git: Git, start: GitStart, state: GitState, fresh: set[str]) -> set[str]:
    """Return the paths that differ from the start by work done here, not by what was fetched or checked out."""
    committed = await git.committed_since(start.moves, start.head)
    if state.head is None or (start.head is not None and not await git.is_ancestor(start.head, state.head)):
        # On another branch, the difference to the start is not the session's work.
        return fresh | committed.here | committed.elsewhere
    if state.head == start.head:
        return fresh | committed.elsewhere
    return (set(await git.changed_since(start.head)) & (fresh | committed.here)) | committed.elsewhere


async def _undecided(git: Git, top: Path, spelled: str, ledger: Ledger, reported: set[str]) -> list[str]:
    """Return the session's files that git knows nothing of."""
    open_ones = [file.path for file in ledger.modified if file.path not in reported]
    inside, outside = await asyncio.to_thread(_inside_and_outside, top, spelled, open_ones)
    ignored = await git.ignored(list(inside))
    return [*outside, *(path for name, path in inside.items() if name in ignored)]


def _top(path: Path) -> Path | None:
    """Return the worktree that a path is in."""
    real = Path(os.path.realpath(path))
    return next((folder for folder in (real, *real.parents) if os.path.lexists(folder / ".git")), None)


def _fresh(top: Path, state: GitState, start: GitStart) -> set[str]:
    """Return the uncommitted files that were not uncommitted in the same state at the start."""
    known = set(start.dirty)
    return {path for path, (mark, _) in _marks(top, state.dirty).items() if mark not in known}


def _marks(top: Path, paths: Iterable[str]) -> dict[str, tuple[str, int]]:
    """Return a hash of each path's state, and when it was changed, in milliseconds."""
    marks: dict[str, tuple[str, int]] = {}
    for path in paths:
        try:
            status = (top / path).lstat()
            state, changed = f"{status.st_ctime_ns} {status.st_size} {status.st_ino}", status.st_ctime_ns // 1_000_000
        except OSError:
            state, changed = "gone", _emptied_ms((top / path).parent)
        marks[path] = (hashlib.sha256(f"{path}\0{state}".encode("utf-8", "surrogateescape")).hexdigest()[:10], changed)
    return marks


def _emptied_ms(folder: Path) -> int:
    """Return the latest time at which a folder, or its nearest existing parent, may have lost an entry."""
    existing = next((one for one in (folder, *folder.parents) if one.is_dir()), None)
    return 0 if existing is None else existing.stat().st_mtime_ns // 1_000_000


def _spelling(top: str, cwd: str | None) -> str:
    """Return a worktree's path as the session writes it, perhaps through a symbolic link."""
    if cwd:
        inside = os.path.realpath(cwd).removeprefix(top)
        if inside != os.path.realpath(cwd) and cwd.endswith(inside):
            return cwd.removesuffix(inside) if inside else cwd.rstrip("/")
    return top


def _changed_files(top: Path, spelled: str, changed: set[str], fresh: set[str]) -> list[Changed]:
    files: list[Changed] = []
    space = SPACE
    for path in sorted(changed):
        full = kept_line(f"{spelled}/{path}", MAX_PATH)
        space -= len(full.encode()) + 40
        if space < 0 or len(files) == MAX_FILES:
            break
        # Files of another branch do not exist here either.
        removed = path in fresh and not os.path.lexists(top / path)
        files.append(Changed(full, removed, path not in fresh))
    return files


def _inside_and_outside(top: Path, spelled: str, paths: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Return the paths in this worktree by their names in it, and the other paths."""
    inside: dict[str, str] = {}
    outside: list[str] = []
    for path in paths:
        name = path.removeprefix(f"{spelled}/")
        if name != path and _top((top / name).parent) == top:
            inside[name] = path
        else:
            outside.append(path)
    return inside, outside
