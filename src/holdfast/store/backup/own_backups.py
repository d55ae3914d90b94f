"""Backups that this installation made, recognised by their hash.

Only these restore keys, trust and waiting work without asking. A file that was changed since is not recognised.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from holdfast.files import append_line
from holdfast.store.files import COMPANIONS, beside

NAME = "made-backups"
"""File in the data directory with a line of size and hash for each backup."""
JOURNALS = (*COMPANIONS, "-journal")


def note(home: Path, file: Path) -> None:
    """Register a backup; called before it gets its final name, so that no named backup is unregistered."""
    append_line(home / NAME, f"{file.stat().st_size} {_digest(file)}".encode(), synced=True)


def is_known(home: Path, file: Path) -> bool:
    """Return whether this installation made exactly this file, and no journal beside it would be read with it."""
    if not file.is_file() or any(beside(file, suffix).exists() for suffix in JOURNALS):
        return False
    try:
        lines = (home / NAME).read_text(encoding="ascii", errors="replace").splitlines()
    except FileNotFoundError:
        return False
    # A file of another size is not read: hashing a huge sparse file would take forever.
    known = {line.partition(" ")[2] for line in lines if line.startswith(f"{file.stat().st_size} ")}
    return bool(known) and _digest(file) in known


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
