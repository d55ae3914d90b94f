"""Whether an open SQLite database is still the file under its name: a removed one takes all it is given with it."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.store.files import beside

Identity = tuple[int, int] | None
"""Device and number of a file; None where there is none."""


class Presence:
    """Remembers which files were opened, and tells when others, or none, stand in their place."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._log_path = str(beside(path, "-wal"))
        self._file = _identity(self._path)
        self._log: Identity = None
        """The log is made with the first write."""

    @property
    def is_same_file(self) -> bool:
        """Whether the database itself is the one that was opened."""
        return _identity(self._path) == self._file

    def problem(self) -> str | None:
        """What became of the files; None while all is well."""
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
        found = os.stat(path)  # noqa: PTH116 - a Path would take twice as long
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
