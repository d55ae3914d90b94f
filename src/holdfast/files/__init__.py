"""Small files: bounded reads of regular files only, and private, atomic writes."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


class NotRegular(OSError):
    """A directory, a pipe, a device or (unless links are followed) a link instead of a regular file."""

    def __init__(self, path: str | Path | None = None) -> None:
        super().__init__(errno.EINVAL, "Not a regular file", path)


class TooLarge(ValueError):
    """A file is longer than the limit."""


def open_regular(path: str | Path, *, follow: bool = True) -> BinaryIO:
    """Open a regular file for reading. Raises NotRegular, or OSError."""
    # Without O_NONBLOCK opening a pipe instead of a file would block forever.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise NotRegular(path) from error
        raise
    return as_regular(descriptor, path)


def as_regular(descriptor: int, path: str | Path | None = None) -> BinaryIO:
    """Return an open descriptor as a file; closes it and raises NotRegular if it is anything else."""
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise NotRegular(path)


def read_bounded(path: str | Path, most: int, *, follow: bool = True) -> bytes:
    """Return the content of a regular file of at most `most` bytes. Raises TooLarge, NotRegular, or OSError."""
    with open_regular(path, follow=follow) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise TooLarge(f"{path} has over {most} bytes.")
    return content


def write_private(
    path: Path, content: str | bytes, *, mode: int = 0o600, check: Callable[[], None] | None = None
) -> None:
    """Write a private file to `path`, durably and atomically.

    `check` is called after everything is written and before anything is replaced; if it raises, the old file stays.
    """
    fresh = _write_draft(path, content, mode)
    try:
        if check is not None:
            check()
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    sync(path.parent)


def make_private(path: Path, content: str | bytes) -> None:
    """Create a private file; an existing one is left unchanged."""
    fresh = _write_draft(path, content, 0o600)
    try:
        os.link(fresh, path)
    except FileExistsError:
        return
    finally:
        fresh.unlink()
    sync(path.parent)


def append_line(path: Path, line: bytes, *, synced: bool = False) -> None:
    """Append a line to a private file, whole or with an error; what an earlier error or power cut left stays apart."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        rest = (b"\n" if torn else b"") + line + b"\n"
        while rest:  # on a full disk, as much as fits is written before there is an error
            rest = rest[os.write(descriptor, rest) :]
        if synced:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def publish(finished: Path, target: Path) -> None:
    """Rename a finished file to its final name, durably and atomically."""
    sync(finished)
    finished.replace(target)
    sync(target.parent)


def sync(path: Path) -> None:
    """Wait until the file (or the folder's entries) is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some file systems (mostly network ones) cannot sync a folder; SQLite ignores that too.
        if error.errno != errno.EINVAL or not stat.S_ISDIR(os.fstat(handle).st_mode):
            raise
    finally:
        os.close(handle)


def _write_draft(path: Path, content: str | bytes, mode: int) -> Path:
    fresh = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        fresh.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)  # a write that fails does not say of which file
        raise
    return fresh
