"""Small secrets of the data directory: made once, readable by their owner alone, and refused in any other state."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import HoldfastError

SHORTEST = 43
"""How many characters `read_or_make` writes; a file with fewer was cut off or written by somebody else."""
LONGEST_BYTES = 1_000_000
OTHERS = 0o077
"""The permission bits of everybody but the owner."""


class UnfitSecret(HoldfastError):
    """A file with a secret is not in a state in which it protects anything."""

    code = "E_UNFIT_SECRET"


@dataclass(frozen=True, slots=True)
class Flaw:
    """What is wrong with a file that holds a secret."""

    text: str
    repair: str
    open_to_others: bool = False
    """Whether its mode is all that is wrong."""


def read_or_make(path: Path) -> str:
    """Return the secret at `path`; make it when there is none. Safe when two processes come first at once."""
    try:
        return read_secret(path)
    except FileNotFoundError:
        pass
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, secrets.token_urlsafe(32).encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    return read_secret(path)


def read_secret(path: Path, shortest: int = SHORTEST) -> str:
    """Return the text at `path`; raises UnfitSecret, or FileNotFoundError when there is no such file."""
    found = _look(path, shortest)
    if isinstance(found, Flaw):
        raise UnfitSecret(found.text, recovery=found.repair)
    return found


def find_flaw(path: Path, shortest: int = SHORTEST) -> Flaw | None:
    """What keeps the file at `path` from being used; None where nothing does, or where there is no file."""
    try:
        found = _look(path, shortest)
    except FileNotFoundError:
        return None
    return found if isinstance(found, Flaw) else None


def _look(path: Path, shortest: int) -> str | Flaw:
    again = f"Remove it (rm -r {path}): the next start makes a new one."
    try:
        # Neither through a link that somebody laid, nor waiting for the other end of a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            return Flaw(f"{path} is not a regular file.", again)
        raise
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            return Flaw(f"{path} is not a regular file.", again)
        if about.st_uid != os.geteuid():
            return Flaw(f"{path} belongs to user {about.st_uid}, this is user {os.geteuid()}.", again)
        if about.st_mode & OTHERS:
            mode = stat.S_IMODE(about.st_mode)
            repair = f"chmod 600 {path} (or, if somebody may have read it, rm {path}: the next start makes a new one)"
            return Flaw(f"{path} is open to others (mode {mode:04o}).", repair, open_to_others=True)
        content = os.read(descriptor, LONGEST_BYTES)
    finally:
        os.close(descriptor)
    try:
        text = content.decode().strip()
    except UnicodeDecodeError:
        return Flaw(f"{path} does not hold text.", again)
    if not text:
        return Flaw(f"{path} is empty.", again)
    if len(text) < shortest:
        return Flaw(f"{path} has {len(text)} characters instead of {shortest} or more.", again)
    return text
