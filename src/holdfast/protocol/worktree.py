"""Finds the worktree of a directory, and the session logs in it. Reads git's files; does not run git."""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path

from holdfast.files.inside import OutsideWorktree, real_path
from holdfast.identity.project import canonical_uri, project_key
from holdfast.lazy_dataclass import dataclass
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
    """Return the worktree of a directory; the directory itself without a repository; None if it does not exist."""
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


def logged_numbers(worktree: Path) -> list[tuple[str, int]]:
    """Return day and number of each session log on disk."""
    try:
        with os.scandir(real_path(worktree, SESSIONS)) as entries:
            names = [_LOG.fullmatch(entry.name) for entry in islice(entries, MAX_LOGS)]
    except (OSError, OutsideWorktree):
        return []
    return [(log[1], int(log[2])) for log in names if log]
