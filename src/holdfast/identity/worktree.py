"""Finds the worktree of a directory. Reads git's files; does not run git."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.identity.project import canonical_uri, key_in_checkout, top_of
from holdfast.lazy_dataclass import dataclass


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
    top = top_of(real)
    path = top or real
    root = canonical_uri(str(path))
    key = None if top is None else key_in_checkout(top, top)
    return Worktree(path, root, key or root, top is not None)
