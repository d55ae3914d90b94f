"""Reads files inside a worktree, and refuses paths that lead out of it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from holdfast.files import NotRegular, as_regular
from holdfast.text.quoting import named

MAX_PATH_SHOWN = 200
"""Characters of a path that an error shows."""

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})


class UnreadableInside(Exception):
    """A path in the worktree cannot be read; the message says which and why."""


class OutsideWorktree(UnreadableInside):
    """A path leaves the worktree: by `..`, by being absolute, or through a symbolic link."""


class NotAFile(UnreadableInside):
    """A directory, a pipe, a device or a socket instead of a file."""


class TooLarge(UnreadableInside):
    """A file is longer than the limit."""


def real_path(worktree: Path, relative: str) -> Path:
    """Resolve a path of the worktree, whether or not it exists. Raises OutsideWorktree."""
    if not _is_a_path(relative):
        raise OutsideWorktree(f"{named(relative, MAX_PATH_SHOWN)} is not a path.")
    if Path(relative).is_absolute() or ".." in Path(relative).parts:
        raise OutsideWorktree(f"{named(relative, MAX_PATH_SHOWN)} must be relative to the worktree and stay in it.")
    root = os.path.realpath(worktree)
    try:
        target = os.path.realpath(Path(root, relative))
    except RecursionError:  # Python resolves a chain of links recursively
        raise OutsideWorktree(f"{relative} leads through too many symbolic links.") from None
    if os.path.commonpath((root, target)) != root:
        raise OutsideWorktree(f"{named(relative, MAX_PATH_SHOWN)} leads out of the worktree through a symbolic link.")
    return Path(target)


def is_folder(worktree: Path, relative: str) -> bool:
    """Return whether there is a folder in the worktree, and not outside of it."""
    try:
        return real_path(worktree, relative).is_dir()
    except (OutsideWorktree, OSError):
        return False


def read_inside(worktree: Path, relative: str, limit: int) -> bytes | None:
    """Return the content of a regular file of at most `limit` bytes; None if missing. Raises UnreadableInside."""
    target = real_path(worktree, relative)
    descriptor = _open(Path(os.path.realpath(worktree)), target, relative)
    if descriptor is None:
        return None
    try:
        with as_regular(descriptor) as file:
            content = file.read(limit + 1)
    except NotRegular as failure:
        raise NotAFile(f"{named(relative, MAX_PATH_SHOWN)} is not a regular file.") from failure
    if len(content) > limit:
        raise TooLarge(f"{named(relative, MAX_PATH_SHOWN)} is longer than {limit} bytes.")
    return content


def _is_a_path(text: str) -> bool:
    try:
        return bool(text) and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _open(root: Path, target: Path, relative: str) -> int | None:
    # The path was resolved a moment ago: opening it one name at a time without following links keeps a link that was
    # created since from leading out. Without O_NONBLOCK opening a pipe would block forever.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    *directories, name = target.relative_to(root).parts or (".",)
    try:
        here = os.open(root, flags | os.O_DIRECTORY)
        for directory in directories:
            above = here
            try:
                here = os.open(directory, flags | os.O_DIRECTORY, dir_fd=above)
            finally:
                os.close(above)
        try:
            return os.open(name, flags, dir_fd=here)
        finally:
            os.close(here)
    except OSError as failure:
        if failure.errno in _ABSENT:
            return None
        if failure.errno == errno.ELOOP:
            raise OutsideWorktree(f"{named(relative, MAX_PATH_SHOWN)} is a broken symbolic link.") from failure
        if failure.errno == errno.ENXIO:
            raise NotAFile(f"{named(relative, MAX_PATH_SHOWN)} is not a regular file.") from failure
        raise UnreadableInside(f"{named(relative, MAX_PATH_SHOWN)} cannot be opened: {failure.strerror}.") from failure
