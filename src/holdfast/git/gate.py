"""Git's own gate: a `reference-transaction` hook that refuses new commits, present only while a session is blocked.

What is closed is a file in a worktree's git directory (`holdfast-gate`): the data directory it belongs to, this
package, the git directory, git's path, the commits that were there on no branch, and the message. The hook
(`reference-transaction.sh`) is for all worktrees of a repository; it is written with the first of these files and
removed with the last. Where Holdfast, the run or the worktree is gone without having removed them, the hook does it
itself.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from functools import cache
from pathlib import Path

import holdfast
from holdfast.files import NotRegular, TooLarge, read_bounded, write_private
from holdfast.git.directory import TAGGED_OFF_BRANCHES, GitDirectories, git_answer, git_directories

HOOK = "reference-transaction"
BEFORE = f"{HOOK}.before-holdfast"
"""The name of a project's own hook while ours is in its place."""
GATE = "holdfast-gate"
CALLED = "holdfast-gate.sh"
"""The same script, for a hook in another place to call."""
OLDEST_GIT = (2, 28)
MAX_BYTES = 256 * 1024
MAX_KNOWN = 200
"""Tagged commits on no branch that are known; sh reads a line byte by byte."""

_VERSION = re.compile(r"git version (\d{1,4})\.(\d{1,4})")
_turns: dict[Path, threading.Lock] = {}
CALL = f'gate="$(git rev-parse --git-common-dir)/{CALLED}"; [ ! -f "$gate" ] || sh "$gate" "$@" || exit 1'
"""The line with which another hook calls ours."""


@cache
def script() -> str:
    """Return the hook."""
    return Path(__file__).with_name(f"{HOOK}.sh").read_text()


def why_off(worktree: Path) -> str | None:
    """Return why git would not call our hook here, and what to do about it; None if it would."""
    directories = git_directories(worktree)
    if directories is None:
        return "this is not a git repository."
    version = _VERSION.match(git_answer(worktree, "version") or "")
    if version is None or (int(version[1]), int(version[2])) < OLDEST_GIT:
        return "git is older than 2.28, or not there. Install a newer git."
    theirs = _others_hook(worktree, directories)
    if theirs is None or _calls_ours(theirs):
        return None
    return f"git's hooks are kept in {theirs.parent}, which is left as it is. Add this line to {theirs}: {CALL}"


def close(worktree: Path, home: Path, message: str, touched_s: float) -> str | None:
    """Refuse new commits in a worktree, with this message; return why that is not possible, if it is not.

    A day after `touched_s` the gate opens by itself, even if no daemon ever runs again.
    """
    directories = git_directories(worktree)
    if directories is None:
        return "this is not a git repository."
    with _turn(directories):
        return _close(worktree, directories, home, message, touched_s)


def _close(worktree: Path, directories: GitDirectories, home: Path, message: str, touched_s: float) -> str | None:
    gate = directories.own / GATE
    git = shutil.which("git") or "git"
    lines = [str(home), str(Path(holdfast.__file__)), str(directories.own), git]
    if any("\n" in line for line in lines):
        return "a path has a line feed in it."
    before = _read(gate)
    # Asked once: what a gate that is closed already does not know came later.
    same, _, rest = (before or "").partition("\n".join([*lines, ""]))
    known = rest.partition("\n")[0] if rest and not same else _off_branches(worktree)
    content = "\n".join([*lines, known, message, ""])
    if before != content or not _is_installed(directories):
        off = why_off(worktree)
        if off is not None:
            _open(directories, home)
            return off
        # The file first: a hook that finds none removes itself.
        write_private(gate, os.fsencode(content))
        _install(worktree, directories)
    os.utime(gate, (touched_s, touched_s))
    return None


def open_again(worktree: Path, home: Path | None = None) -> bool:
    """Let new commits through again; return whether they were refused. With `home`, only a gate of this directory."""
    directories = git_directories(worktree)
    if directories is None:
        return False
    with _turn(directories):
        return _open(directories, home)


def _open(directories: GitDirectories, home: Path | None) -> bool:
    gate = directories.own / GATE
    content = _read(gate)
    ours = content is not None and (home is None or content.partition("\n")[0] == str(home))
    if ours:
        gate.unlink(missing_ok=True)
    if ours or _is_ours(directories.hooks / HOOK):
        _remove_unless_needed(directories)
    return ours


def owner(worktree: Path) -> str | None:
    """Return the data directory whose gate is closed in a worktree; None if none is."""
    directories = git_directories(worktree)
    content = _read(directories.own / GATE) if directories is not None else None
    return None if content is None else content.partition("\n")[0]


def _off_branches(worktree: Path) -> str:
    """Return HEAD and the tagged commits that are on no branch, such as releases: they may be checked out."""
    head = git_answer(worktree, "rev-parse", "--verify", "--quiet", "HEAD") or ""
    tagged = git_answer(worktree, "rev-list", *TAGGED_OFF_BRANCHES, "-n", str(MAX_KNOWN)) or ""
    return " ".join([head, *tagged.split()])


def _turn(directories: GitDirectories) -> threading.Lock:
    """Return the lock for what all worktrees of a repository share."""
    return _turns.setdefault(directories.common, threading.Lock())


def _install(worktree: Path, directories: GitDirectories) -> None:
    if _others_hook(worktree, directories) is not None:
        write_private(directories.common / CALLED, script(), mode=0o755)
        return
    hook = directories.hooks / HOOK
    directories.hooks.mkdir(exist_ok=True)
    if os.path.lexists(hook) and not _is_ours(hook):
        # A second name, and then ours over the first: there is no moment without theirs. An older one under that name
        # is gone in any case: the author of this hook would have overwritten it.
        before = hook.with_name(BEFORE)
        before.unlink(missing_ok=True)
        os.link(hook, before, follow_symlinks=False)
    write_private(hook, script(), mode=0o755)


def _remove_unless_needed(directories: GitDirectories) -> None:
    """Remove the hook if no worktree needs it, and put back what was there before."""
    if any(os.path.lexists(folder / GATE) for folder in directories.all_worktrees()):
        return
    (directories.common / CALLED).unlink(missing_ok=True)
    hook, before = directories.hooks / HOOK, directories.hooks / BEFORE
    if os.path.lexists(hook) and not _is_ours(hook):
        before.unlink(missing_ok=True)  # a newer one of theirs has taken its place
    elif os.path.lexists(before):
        before.replace(hook)
    else:
        hook.unlink(missing_ok=True)


def _is_installed(directories: GitDirectories) -> bool:
    return any(_read(path) == script() and os.access(path, os.X_OK) for path in _places(directories))


def _places(directories: GitDirectories) -> tuple[Path, Path]:
    return directories.hooks / HOOK, directories.common / CALLED


def _others_hook(worktree: Path, directories: GitDirectories) -> Path | None:
    """Return where git looks for the hook, if that is a directory of the project or the user; None for git's own."""
    configured = git_answer(worktree, "config", "--type=path", "--get", "core.hooksPath")
    if configured is not None:
        hooks = worktree / configured
        if os.path.realpath(hooks) != os.path.realpath(directories.hooks):
            return hooks / HOOK
    return directories.hooks / HOOK if directories.hooks.is_symlink() else None


def _calls_ours(hook: Path) -> bool:
    return CALLED in (_read(hook) or "") and os.access(hook, os.X_OK)


def _is_ours(hook: Path) -> bool:
    return not hook.is_symlink() and "Holdfast's gate" in (_read(hook) or "")[:200]


def _read(path: Path) -> str | None:
    try:
        return os.fsdecode(read_bounded(path, MAX_BYTES))
    except (OSError, NotRegular, TooLarge):
        return None
