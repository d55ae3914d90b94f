"""Originals of the files that setup changed, so that removing Holdfast restores them byte for byte.

Kept in the data directory, which only its owner can read, because agents' settings may contain secrets. An original is
used only if the file is exactly as setup left it; later changes are never undone.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.files import write_private
from holdfast.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Original:
    """A file before setup, and how to tell whether it was changed since."""

    path: str
    text: str | None
    """None if there was no file."""
    digest: str
    """Digest of the file as setup left it."""
    folder_made: bool
    """Whether setup created the file's directory."""


class Originals:
    """The originals of all files that setup changed."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._folder = home / "setup"

    def of(self, path: Path) -> Original | None:
        """Return the original of a file, even if the file was changed since; None if there is no readable one."""
        try:
            fields = json.loads(self._path_for(path).read_text())
            original = Original(**fields)
        except (OSError, ValueError, TypeError):
            return None
        return original if original.path == str(path) else None

    def counting(self, path: Path, text: str | None) -> Original | None:
        """Return the original of a file that is exactly as setup left it."""
        original = self.of(path)
        return original if original is not None and original.digest == digest(text) else None

    def put(self, path: Path, original: Original | None) -> None:
        """Store a file's original in place of an earlier one; None removes it."""
        stored = self._path_for(path)
        if original is None:
            stored.unlink(missing_ok=True)
            return
        try:
            for folder in (self._home, self._folder):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(stored, json.dumps(asdict(original)))
        except OSError as failure:
            raise HoldfastError(
                f"{stored} cannot be written: {failure.strerror}.",
                recovery="Make the data directory writable, or choose another with --home.",
            ) from failure

    def _path_for(self, path: Path) -> Path:
        return self._folder / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"


def last_setup(home: Path) -> int | None:
    """Return when setup last changed an agent's settings, in milliseconds; None if it never did."""
    try:
        return max((int(path.stat().st_mtime * 1000) for path in (home / "setup").glob("*.json")), default=None)
    except OSError:
        return None


def digest(text: str | None) -> str:
    """Return the digest of a text; a missing file differs from an empty one."""
    return "none" if text is None else hashlib.sha256(text.encode()).hexdigest()
