"""Database files as files: names with a time in them, moves that survive a power cut."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

COMPANIONS = ("-wal", "-shm")
"""What SQLite keeps beside a database; a file under another name needs them under that name too."""


def utc_stamp(now_ms: int) -> str:
    """A time for use in a file name: 20260728T101500123Z."""
    return datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y%m%dT%H%M%S") + f"{now_ms % 1000:03}Z"


def beside(path: Path, suffix: str) -> Path:
    """`path` with `suffix` at the end of its name."""
    return path.with_name(path.name + suffix)


def sync(path: Path) -> None:
    """Wait until the file (or the folder's list of names) is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_database(path: Path) -> None:
    """Delete a database file that is of no use, with its companions."""
    for suffix in ("", *COMPANIONS):
        beside(path, suffix).unlink(missing_ok=True)


def remove_companions(path: Path) -> None:
    """Delete what SQLite keeps beside a database."""
    for suffix in COMPANIONS:
        beside(path, suffix).unlink(missing_ok=True)


def publish(finished: Path, target: Path) -> None:
    """Give a finished file its name, durably and in one step."""
    sync(finished)
    finished.replace(target)
    sync(target.parent)


def replace_database(path: Path, finished: Path, aside: Path) -> None:
    """Put `finished` in the place of the database at `path`, which is kept as `aside` if there is one.

    Whenever the power fails, `path` names the old database or the new one, never nothing: a missing database would look
    like a new one.
    """
    if path.exists():
        _also_name(path, aside)
    log = beside(path, "-wal")
    if log.exists() and log.stat().st_size:  # the -shm is only an index of it, which SQLite makes anew
        _also_name(log, beside(aside, "-wal"))
    sync(path.parent)
    # A log left over from the old database would be applied to the new one.
    remove_companions(path)
    publish(finished, path)


def _also_name(path: Path, other: Path) -> None:
    try:
        other.hardlink_to(path)
    except OSError:  # a file system without hard links
        shutil.copy2(path, other)
        sync(other)


def newest_backup(home: Path) -> str | None:
    """The newest backup that was made by itself; a daily one before others, because it was verified."""
    folder = home / "backups"
    found = sorted(folder.glob("daily-*.db")) or sorted(folder.glob("*.db"), key=lambda path: path.stat().st_mtime_ns)
    return str(found[-1]) if found else None
