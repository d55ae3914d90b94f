"""Operations on database files: names with timestamps, and moves that survive a power cut."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from holdfast.files import publish as publish
from holdfast.files import sync as sync

COMPANIONS = ("-wal", "-shm")
"""Suffixes of the files that SQLite keeps beside a database; they must be renamed together with it."""


def utc_stamp(now_ms: int) -> str:
    """Return a timestamp for use in a file name: 20260728T101500123Z."""
    return datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y%m%dT%H%M%S") + f"{now_ms % 1000:03}Z"


def beside(path: Path, suffix: str) -> Path:
    """Return `path` with `suffix` appended to its name."""
    return path.with_name(path.name + suffix)


def remove_database(path: Path) -> None:
    """Delete a database file with its companions."""
    for suffix in ("", *COMPANIONS):
        beside(path, suffix).unlink(missing_ok=True)


def remove_companions(path: Path) -> None:
    """Delete the files that SQLite keeps beside a database."""
    for suffix in COMPANIONS:
        beside(path, suffix).unlink(missing_ok=True)


def replace_database(path: Path, finished: Path, aside: Path) -> None:
    """Replace the database at `path` with `finished`; the old one, if any, is kept as `aside`.

    Whenever the power fails, `path` is the old database or the new one, and is never missing: a missing database would
    look like a new one.
    """
    if path.exists():
        _also_name(path, aside)
    log = beside(path, "-wal")
    if log.exists() and log.stat().st_size:  # the -shm is only an index of it, which SQLite recreates
        _also_name(log, beside(aside, "-wal"))
    sync(path.parent)
    # A log left over from the old database would be applied to the new one.
    remove_companions(path)
    publish(finished, path)


def _also_name(path: Path, other: Path) -> None:
    try:
        other.hardlink_to(path)
    except OSError:  # a file system without hard links
        import shutil  # imported late to keep the daemon's start fast

        shutil.copy2(path, other)
        sync(other)


def newest_backup(home: Path) -> str | None:
    """Return the newest automatic backup; daily ones are preferred, because they were verified."""
    folder = home / "backups"
    backups = sorted(folder.glob("daily-*.db")) or sorted(folder.glob("*.db"), key=lambda path: path.stat().st_mtime_ns)
    return str(backups[-1]) if backups else None
