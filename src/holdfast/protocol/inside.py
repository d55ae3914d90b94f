"""Reads files of a worktree, and nothing that only looks like one."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from holdfast.quoting import named

LONGEST_NAMED = 200
"""Characters of a path in an error."""

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
_PIECE = 64 * 1024


class UnreadableInside(Exception):
    """A path of the worktree that is not read; the message says which and why."""


class OutsideWorktree(UnreadableInside):
    """A path that leaves the worktree, by `..`, by being absolute or through a symbolic link."""


class NotAFile(UnreadableInside):
    """A directory, a pipe, a device or a socket where a file is expected."""


class TooLarge(UnreadableInside):
    """A file longer than what is read of it."""


def real_path(worktree: Path, relative: str) -> Path:
    """Where a path of the worktree really is, whether or not something is there. Raises OutsideWorktree."""
    if not _is_a_path(relative):
        raise OutsideWorktree(f"{named(relative, LONGEST_NAMED)} is not a path.")
    if Path(relative).is_absolute() or ".." in Path(relative).parts:
        raise OutsideWorktree(f"{named(relative, LONGEST_NAMED)} must be relative to the worktree and stay in it.")
    root = os.path.realpath(worktree)
    try:
        target = os.path.realpath(Path(root, relative))
    except RecursionError:  # Python follows a chain of links by calling itself
        raise OutsideWorktree(f"{relative} leads through too many symbolic links.") from None
    if os.path.commonpath((root, target)) != root:
        raise OutsideWorktree(f"{named(relative, LONGEST_NAMED)} leads out of the worktree through a symbolic link.")
    return Path(target)


def read_inside(worktree: Path, relative: str, limit: int) -> bytes | None:
    """The content of a regular file of at most `limit` bytes; None where there is nothing. Raises UnreadableInside."""
    target = real_path(worktree, relative)
    descriptor = _open(Path(os.path.realpath(worktree)), target, relative)
    if descriptor is None:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotAFile(f"{named(relative, LONGEST_NAMED)} is not a regular file.")
        content = _read(descriptor, limit + 1)
    finally:
        os.close(descriptor)
    if len(content) > limit:
        raise TooLarge(f"{named(relative, LONGEST_NAMED)} is longer than {limit} bytes.")
    return content


def _is_a_path(text: str) -> bool:
    try:
        return bool(text) and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _open(root: Path, target: Path, relative: str) -> int | None:
    # The path was resolved a moment ago: opening it one name at a time without following anything keeps a link that
    # was put there since from leading out. Without O_NONBLOCK a pipe would hold up the opening for ever.
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
            raise OutsideWorktree(
                f"{named(relative, LONGEST_NAMED)} is a symbolic link that leads nowhere."
            ) from failure
        if failure.errno == errno.ENXIO:
            raise NotAFile(f"{named(relative, LONGEST_NAMED)} is not a regular file.") from failure
        raise UnreadableInside(f"{named(relative, LONGEST_NAMED)} cannot be opened: {failure.strerror}.") from failure


def _read(descriptor: int, most: int) -> bytes:
    pieces: list[bytes] = []
    while most > 0 and (piece := os.read(descriptor, min(most, _PIECE))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)
