"""The installation itself, and the data directory with what in it must be private."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from holdfast.doctor.findings import Finding, Fix, fault, note, ok
from holdfast.doctor.surroundings import Surroundings
from holdfast.file_errors import READ_ONLY, is_read_only
from holdfast.secrets_file import OTHERS, find_flaw
from holdfast.version import __version__

TIGHT_BYTES = 1_000_000_000
FULL_BYTES = 100_000_000
SECRETS = ("key", "machine", "signing-keys")
PRIVATE = (*SECRETS, "holdfast.db")
"""What in the data directory only its owner may read."""


def check_installation(around: Surroundings) -> Iterator[Finding]:
    """Version, python, and where the command is."""
    command = shutil.which("holdfast", path=around.env.get("PATH"))
    beside = Path(sys.executable).with_name("holdfast")
    text = f"holdfast {__version__}, Python {sys.version.split()[0]} ({sys.executable})"
    if command is not None and (command == str(beside) or Path(command).resolve() == beside.resolve()):
        yield ok(f"{text}, command {command}")
    elif command is not None:
        yield note(f"{text}; the command on PATH is another one: {command}", f"Call {beside} where you mean this one.")
    else:
        yield note(f"{text}; no `holdfast` on PATH", f"Put {beside.parent} on PATH, or run `make install`.")


def check_home(around: Surroundings) -> Iterator[Finding]:
    """The data directory: there, ours, private, writable, with room."""
    home = around.home
    try:
        found = home.stat()
    except FileNotFoundError:
        yield from _not_there_yet(home)
        return
    if not stat.S_ISDIR(found.st_mode):
        yield fault(f"{home} is not a directory.", "Move it away, or set HOLDFAST_HOME to another place.")
        return
    if found.st_uid != os.geteuid():
        yield fault(
            f"{home} belongs to user {found.st_uid}, this is user {os.geteuid()}.",
            "Run Holdfast as its owner, or set HOLDFAST_HOME to a directory of your own.",
        )
        return
    mode = stat.S_IMODE(found.st_mode)
    if mode & OTHERS:
        yield fault(f"{home} is open to others (mode {mode:04o}).", f"chmod 700 {home}", closed(home, 0o700))
    if is_read_only(home):  # asked first: a program that runs as root may be told that it can write there
        yield fault(f"{home} cannot be written: {READ_ONLY.text}.", READ_ONLY.recovery)
        return
    if not allowed(home, os.W_OK | os.X_OK):
        yield fault(
            f"{home} cannot be written: permission denied (mode {mode:04o}).",
            f"chmod 700 {home}",
            None if mode & 0o300 == 0o300 else closed(home, 0o700),
        )
        return
    yield from _room(home, mode)


def check_key(around: Surroundings) -> Iterator[Finding]:
    """The key that HTTP clients send, and every other secret of the data directory."""
    path = around.settings.key_file
    sound = True
    for name in PRIVATE:
        for finding in _private(around.home / name):
            sound = False
            yield finding
    if not path.exists():
        if around.daemon is None:
            yield ok("none yet; the first start makes it")
            return
        yield fault(
            f"{path} is gone: the daemon still wants the key that was in it.",
            "`holdfast stop`, then `holdfast serve`: it makes a new one, which HTTP clients then need.",
        )
    elif sound:
        yield ok(f"{path}, for its owner alone")


def allowed(path: Path, wanted: int) -> bool:
    """Whether this process may do that with a file, a file system that is mounted read-only included."""
    return os.access(path, wanted, effective_ids=os.access in os.supports_effective_ids)


def closed(path: Path, mode: int) -> Fix:
    """Gives a file or directory back to its owner alone."""

    def close() -> str:
        path.chmod(mode)
        return f"{path} has mode {mode:04o} now"

    return close


def _not_there_yet(home: Path) -> Iterator[Finding]:
    parent = next(folder for folder in home.parents if folder.exists())
    if is_read_only(parent):
        yield fault(f"{home} is not there and cannot be made: {READ_ONLY.text}.", READ_ONLY.recovery)
    elif allowed(parent, os.W_OK | os.X_OK):
        yield ok(f"{home} (not there yet; the first start makes it)")
    else:
        yield fault(
            f"{home} is not there, and {parent} cannot be written.", "Set HOLDFAST_HOME to a directory of your own."
        )


def _room(home: Path, mode: int) -> Iterator[Finding]:
    free = shutil.disk_usage(home).free
    room = f"{free / 1e9:.1f} GB free"
    if free < FULL_BYTES:
        yield fault(f"{home}: the disk is full ({free / 1e6:.0f} MB free).", "Free some room; nothing can be recorded.")
    elif free < TIGHT_BYTES:
        yield note(f"{home}: {room}", "Free some room before recording has to stop.")
    elif not mode & OTHERS:
        yield ok(f"{home}, mode {mode:04o}, {room}")


def _private(path: Path) -> Iterator[Finding]:
    if path.name in SECRETS:
        flaw = find_flaw(path) if allowed(path, os.R_OK) or path.is_symlink() else None
        if flaw is not None:
            yield fault(flaw.text, flaw.repair, closed(path, 0o600) if flaw.open_to_others else None)
            return
    try:
        found = path.stat()
    except FileNotFoundError:
        return
    if found.st_uid != os.geteuid():
        yield fault(f"{path} belongs to user {found.st_uid}.", "Give it back to the owner of the data directory.")
    elif found.st_mode & OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        yield fault(f"{path} is open to others (mode {mode:04o}).", f"chmod 600 {path}", closed(path, 0o600))
    elif not allowed(path, os.R_OK):
        yield fault(f"{path} cannot be read by its owner.", f"chmod 600 {path}", closed(path, 0o600))
