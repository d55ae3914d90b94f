"""Explains operating system errors on files, and what to do about them."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import HoldfastError


class FileTrouble(HoldfastError):
    """A file or directory could not be read or written."""

    code = "E_FILE"


class Reason(NamedTuple):
    """Why a file could not be used, and the next step."""

    text: str
    recovery: str


READ_ONLY = Reason(
    "its file system is mounted read-only",
    "Mount it for writing (`mount` shows how it is mounted), or set HOLDFAST_HOME to a writable directory.",
)
FULL = Reason("the disk is full", "Free disk space, then repeat the command.")
FORBIDDEN = Reason("permission denied", "Check who owns it and its mode (`ls -ld`), or run the command as its owner.")
REASONS = {
    errno.EROFS: READ_ONLY,
    errno.ENOSPC: FULL,
    errno.EDQUOT: Reason("the disk quota is used up", FULL.recovery),
    errno.EACCES: FORBIDDEN,
    errno.EPERM: FORBIDDEN,
}


def explain(error: OSError) -> FileTrouble:
    """Return the error with its file, its cause and the next step."""
    reason = REASONS.get(error.errno or 0)
    name = error.filename2 or error.filename
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    if reason is None:
        return FileTrouble(f"{name}: {error.strerror}." if name else f"{error.strerror or error}.")
    place = name or "A file"
    verb = "cannot be read or written" if reason is FORBIDDEN else "cannot be written"
    return FileTrouble(f"{place} {verb}: {reason.text}.", recovery=reason.recovery)


def why_not_writable(path: Path) -> Reason | None:
    """Return why `path`, or the directory it would be created in, cannot be written; None if it can."""
    there = next(place for place in (path, *path.parents) if place.exists())
    if is_read_only(there):
        return READ_ONLY
    folder = there if there.is_dir() else there.parent
    allowed = os.access(folder, os.W_OK | os.X_OK) and os.access(there, os.W_OK)
    return None if allowed else FORBIDDEN


def is_read_only(path: Path) -> bool:
    """Return whether `path`, which exists, is on a file system that is mounted read-only."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
