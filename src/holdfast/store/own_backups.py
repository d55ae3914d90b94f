"""Backups that this installation made, known again by their hash.

Only these bring keys, trust and waiting work back by themselves. A file that was changed since is another one.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from holdfast.store.files import COMPANIONS, beside

NAME = "made-backups"
"""In the data directory, a line with size and hash for each."""
JOURNALS = (*COMPANIONS, "-journal")


def note(home: Path, file: Path) -> None:
    """Know a backup from now on; before it gets its name, so that none has it unknown."""
    descriptor = os.open(home / NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, f"{file.stat().st_size} {_digest(file)}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_known(home: Path, file: Path) -> bool:
    """Whether this installation made this very file, and nothing beside it would be read as a part of it."""
    if not file.is_file() or any(beside(file, suffix).exists() for suffix in JOURNALS):
        return False
    try:
        lines = (home / NAME).read_text(encoding="ascii", errors="replace").splitlines()
    except FileNotFoundError:
        return False
    # A file of another size is not read: one full of holes would take for ever.
    known = {line.partition(" ")[2] for line in lines if line.startswith(f"{file.stat().st_size} ")}
    return bool(known) and _digest(file) in known


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
