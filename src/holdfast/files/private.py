"""Secret files in the data directory: created once, readable only by their owner, and refused in any other state."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.files import NotRegular, make_private, open_regular
from holdfast.lazy_dataclass import dataclass

SECRET_CHARS = 43
"""Characters that `read_or_make` writes; a shorter file was truncated or written by another program."""
MAX_SECRET_BYTES = 1_000_000
OTHERS = 0o077
"""Permission bits of everyone but the owner."""


class UnfitSecret(HoldfastError):
    """A secret file is in a state in which it protects nothing."""

    code = "E_UNFIT_SECRET"


@dataclass(frozen=True, slots=True)
class Flaw:
    """What is wrong with a secret file."""

    text: str
    repair: str
    open_to_others: bool = False
    """Whether only its mode is wrong."""


def read_or_make(path: Path) -> str:
    """Return the secret at `path`, creating it if missing. Safe if two processes create it at once."""
    try:
        return read_secret(path)
    except FileNotFoundError:
        pass
    make_private(path, secrets.token_urlsafe(32))
    return read_secret(path)


def read_secret(path: Path, shortest: int = SECRET_CHARS) -> str:
    """Return the text at `path`; raises UnfitSecret, or FileNotFoundError if there is no such file."""
    secret = _read_or_flaw(path, shortest)
    if isinstance(secret, Flaw):
        raise UnfitSecret(secret.text, recovery=secret.repair)
    return secret


def find_flaw(path: Path, shortest: int = SECRET_CHARS) -> Flaw | None:
    """Return why the file at `path` cannot be used; None if it can, or if it does not exist."""
    try:
        secret = _read_or_flaw(path, shortest)
    except FileNotFoundError:
        return None
    return secret if isinstance(secret, Flaw) else None


def _read_or_flaw(path: Path, shortest: int) -> str | Flaw:
    recovery = f"Remove it (rm -r {path}): the next start creates a new one."
    try:
        # Neither follow a planted link, nor block on a pipe.
        file = open_regular(path, follow=False)
    except NotRegular:
        return Flaw(f"{path} is not a regular file.", recovery)
    with file:
        about = os.fstat(file.fileno())
        if about.st_uid != os.geteuid():
            return Flaw(f"{path} belongs to user {about.st_uid}, this is user {os.geteuid()}.", recovery)
        if about.st_mode & OTHERS:
            mode = stat.S_IMODE(about.st_mode)
            repair = f"chmod 600 {path} (or, if somebody may have read it, rm {path}: the next start creates a new one)"
            return Flaw(f"{path} is open to others (mode {mode:04o}).", repair, open_to_others=True)
        content = file.read(MAX_SECRET_BYTES)
    try:
        text = content.decode().strip()
    except UnicodeDecodeError:
        return Flaw(f"{path} does not hold text.", recovery)
    if not text:
        return Flaw(f"{path} is empty.", recovery)
    if len(text) < shortest:
        return Flaw(f"{path} has {len(text)} characters instead of {shortest} or more.", recovery)
    return text
