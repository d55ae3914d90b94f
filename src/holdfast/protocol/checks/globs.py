"""Finds the paths of a worktree that match a pattern, without leaving the worktree."""

from __future__ import annotations

import errno
import fnmatch
import os
import re
from functools import lru_cache
from itertools import takewhile
from pathlib import Path, PurePosixPath

from holdfast.files.inside import UnreadableInside, real_path
from holdfast.protocol.checks.findings import shown

MAX_VISITED = 200_000
_MAGIC = re.compile(r"[*?]")


def is_pattern(text: str) -> bool:
    """Return whether a text is a pattern rather than one path."""
    return _MAGIC.search(text) is not None


def matches(pattern: str, path: str) -> bool:
    """Return whether a pattern matches a path: `*` and `?` stay in one directory, `**` crosses any number of them."""
    names = path.split("/")
    # The prefixes of the path that the pattern has matched so far. Advancing all of them at once costs the same for
    # every pattern; a regular expression could be made to run forever by an untrusted project.
    reached = {0}
    parts = pattern.split("/")
    for part in parts:
        if part == "**":
            reached = set(range(min(reached), len(names)))
        else:
            fits = _compiled(part).fullmatch
            reached = {here + 1 for here in reached if here < len(names) and fits(names[here])}
        if not reached:
            return False
    return len(names) in reached or parts[-1] == "**"


def find(worktree: Path, pattern: str) -> list[str]:
    """Return the files and links that match a pattern, or the one path it is. Raises UnreadableInside."""
    if not is_pattern(pattern):
        return [pattern] if os.path.lexists(real_path(worktree, pattern)) else []
    start = before_magic(pattern)
    folder = real_path(worktree, start)
    paths: list[str] = []
    visited = 0
    for here, folders, files in os.walk(folder, onerror=_unlistable):
        folders[:] = sorted(name for name in folders if name != ".git")
        within = PurePosixPath(start, os.path.relpath(here, folder))
        visited += len(files) + len(folders)
        if visited > MAX_VISITED:
            raise UnreadableInside(f"{shown(str(start))} holds more than {MAX_VISITED} files; use a narrower pattern.")
        paths += [path for name in sorted(files) if matches(pattern, path := str(within / name))]
    return paths


def before_magic(pattern: str) -> str:
    """Return the folder that everything matching a pattern is in."""
    return str(PurePosixPath(*takewhile(lambda part: not is_pattern(part), PurePosixPath(pattern).parts[:-1])))


@lru_cache(maxsize=256)
def _compiled(part: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(part.replace("[", "[[]")))


def _unlistable(failure: OSError) -> None:
    if failure.errno in (errno.ENOENT, errno.ENOTDIR):
        return
    raise UnreadableInside(f"{shown(str(failure.filename))} cannot be listed: {failure.strerror}.") from failure
