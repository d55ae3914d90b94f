"""What a file was before setup changed it, so that taking Holdfast out gives it back to the byte.

Kept in the data directory, which nobody else can read: settings of agents hold secrets at times. An original counts
only as long as the file is just as setup left it; what others changed meanwhile is never undone.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from holdfast.errors import HoldfastError


@dataclass(frozen=True, slots=True)
class Original:
    """A file before setup, and how to tell that nobody touched it since."""

    path: str
    text: str | None
    """None where there was no file."""
    digest: str
    """Of the file as setup left it."""
    folder_made: bool
    """Whether the file's directory came with it."""


class Originals:
    """The originals of all files that setup changed."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._folder = home / "setup"

    def of(self, path: Path) -> Original | None:
        """The original of a file, whether or not it still counts; None where there is none that can be read."""
        try:
            fields = json.loads(self._place(path).read_text())
            original = Original(**fields)
        except (OSError, ValueError, TypeError):
            return None
        return original if original.path == str(path) else None

    def counting(self, path: Path, text: str | None) -> Original | None:
        """The original of a file that is just as setup left it."""
        original = self.of(path)
        return original if original is not None and original.digest == digest(text) else None

    def keep(self, original: Original) -> None:
        """Keep an original in place of an earlier one."""
        place = self._place(Path(original.path))
        fresh = place.with_name(f".{place.name}.{secrets.token_hex(8)}")
        try:
            for folder in (self._home, self._folder):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                    json.dump(asdict(original), file)
                    file.flush()
                    os.fsync(file.fileno())
                fresh.replace(place)
            finally:
                fresh.unlink(missing_ok=True)
        except OSError as failure:
            raise HoldfastError(
                f"{place} cannot be written: {failure.strerror}.",
                recovery="Make the data directory writable, or choose another with --home.",
            ) from failure

    def forget(self, path: Path) -> None:
        """Drop a file's original."""
        self._place(path).unlink(missing_ok=True)

    def _place(self, path: Path) -> Path:
        return self._folder / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"


def digest(text: str | None) -> str:
    """Tells one text from another; no file is not the same as an empty one."""
    return "none" if text is None else hashlib.sha256(text.encode()).hexdigest()
