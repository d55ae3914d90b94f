"""Finds the worktree of a directory, and the session logs in it. Reads git's files; does not run git."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from holdfast.files.inside import OutsideWorktree, real_path
from holdfast.identity.project import canonical_uri, project_key
from holdfast.protocol.protocols import SESSIONS

MAX_LOGS = 100_000

_LOG = re.compile(r"(\d{4}-\d{2}-\d{2})-session-(\d{1,6})(?:\D.*)?\.md")


@dataclass(frozen=True, slots=True)
class Worktree:
    """The top directory of a checkout, and the project key that all checkouts share."""

    path: Path
    root: str
    project: str
    is_git: bool


def worktree_of(directory: Path) -> Worktree | None:
    """The worktree of a directory; the directory itself without a repository; None if it does not exist."""
    real = Path(os.path.realpath(directory))
    try:
        if not real.is_dir():
            return None
    except OSError:  # not a possible directory name
        return None
    top = next((folder for folder in (real, *real.parents) if (folder / ".git").exists()), None)
    path = top or real
    root = canonical_uri(str(path))
    return Worktree(path, root, project_key(path) or root, top is not None)


def logged_numbers(worktree: Path) -> dict[str, list[int]]:
    """The numbers of the session logs on disk, by day."""
    found: dict[str, list[int]] = {}
    try:
        with os.scandir(real_path(worktree, SESSIONS)) as entries:
            for count, entry in enumerate(entries):
                log = _LOG.fullmatch(entry.name)
                if log:
                    found.setdefault(log[1], []).append(int(log[2]))
                if count > MAX_LOGS:
                    break
    except (OSError, OutsideWorktree):
        return found
    return found
