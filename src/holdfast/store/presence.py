"""Detects that an open SQLite database was removed or replaced on disk: later writes to it would be lost."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.store.files import beside

Identity = tuple[int, int] | None
"""Device and inode of a file; None if it does not exist."""


class Presence:
    """Remembers which files were opened, and notices when they are replaced or removed."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._log_path = str(beside(path, "-wal"))
        self._file = _identity(self._path)
        self._log: Identity = None
        """None until the first write creates the log."""

    @property
    def is_same_file(self) -> bool:
        """Whether the database itself is the one that was opened."""
        return _identity(self._path) == self._file

    def problem(self) -> str | None:
        """Return what happened to the files; None while they are unchanged."""
        if _identity(self._path) != self._file:
            return "was replaced" if _identity(self._path) else "was removed"
        log = _identity(self._log_path)
        if self._log is None:
            self._log = log
        elif log != self._log:
            return "lost its write-ahead log"
        return None


def _identity(path: str) -> Identity:
    try:
        status = os.stat(path)  # noqa: PTH116 - a Path would take twice as long
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
