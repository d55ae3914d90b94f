"""Checks of the installation and the data directory, with its private files."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from holdfast.doctor.findings import Finding, Fix, fault, note, ok
from holdfast.doctor.surroundings import Surroundings
from holdfast.files.errors import READ_ONLY, is_read_only
from holdfast.files.private import OTHERS, find_flaw
from holdfast.version import __version__

LOW_DISK_BYTES = 1_000_000_000
FULL_DISK_BYTES = 100_000_000
SECRETS = ("key", "machine", "signing-keys")
PRIVATE = (*SECRETS, "holdfast.db")
"""Files of the data directory that only its owner may read."""


def check_installation(around: Surroundings) -> Iterator[Finding]:
    """Check the version, Python, and the command on PATH."""
    command = shutil.which("holdfast", path=around.env.get("PATH"))
    beside = Path(sys.executable).with_name("holdfast")
    text = f"holdfast {__version__}, Python {sys.version.split()[0]} ({sys.executable})"
    if command is not None and (command == str(beside) or Path(command).resolve() == beside.resolve()):
        yield ok(f"{text}, command {command}")
    elif command is not None:
        yield note(f"{text}; the command on PATH is another one: {command}", f"Run {beside} to use this one.")
    else:
        yield note(f"{text}; no `holdfast` on PATH", f"Put {beside.parent} on PATH, or run `make install`.")


def check_home(around: Surroundings) -> Iterator[Finding]:
    """Check the data directory: it exists, is ours, private and writable, and has free space."""
    home = around.home
    try:
        status = home.stat()
    except FileNotFoundError:
        yield from _missing_home(home)
        return
    if not stat.S_ISDIR(status.st_mode):
        yield fault(f"{home} is not a directory.", "Move it away, or set HOLDFAST_HOME to another directory.")
        return
    if status.st_uid != os.geteuid():
        yield fault(
            f"{home} belongs to user {status.st_uid}, this is user {os.geteuid()}.",
            "Run Holdfast as its owner, or set HOLDFAST_HOME to a directory of your own.",
        )
        return
    mode = stat.S_IMODE(status.st_mode)
    if mode & OTHERS:
        yield fault(f"{home} is open to others (mode {mode:04o}).", f"chmod 700 {home}", closed(home, 0o700))
    if is_read_only(home):  # first, because for root the permissions would allow writing
        yield fault(f"{home} cannot be written: {READ_ONLY.text}.", READ_ONLY.recovery)
        return
    if not allowed(home, os.W_OK | os.X_OK):
        yield fault(
            f"{home} cannot be written: permission denied (mode {mode:04o}).",
            f"chmod 700 {home}",
            None if mode & 0o300 == 0o300 else closed(home, 0o700),
        )
        return
    yield from _free_space(home, mode)


def check_key(around: Surroundings) -> Iterator[Finding]:
    """Check the key that HTTP clients send, and the other secrets of the data directory."""
    path = around.settings.key_file
    sound = True
    for name in PRIVATE:
        for finding in _private(around.home / name):
            sound = False
            yield finding
    if not path.exists():
        if around.daemon is None:
            yield ok("none yet; created at the first start")
            return
        yield fault(
            f"{path} is gone, but the daemon still expects the key that was in it.",
            "Run `holdfast stop`, then `holdfast serve`: it creates a new one, which HTTP clients then need.",
        )
    elif sound:
        yield ok(f"{path}, readable only by its owner")


def allowed(path: Path, wanted: int) -> bool:
    """Return whether this process has that access to a file, also considering a read-only file system."""
    return os.access(path, wanted, effective_ids=os.access in os.supports_effective_ids)


def closed(path: Path, mode: int) -> Fix:
    """Return a fix that restricts a file or directory to its owner."""

    def close() -> str:
        path.chmod(mode)
        return f"{path} has mode {mode:04o} now"

    return close


def _missing_home(home: Path) -> Iterator[Finding]:
    parent = next(folder for folder in home.parents if folder.exists())
    if is_read_only(parent):
        yield fault(f"{home} does not exist and cannot be created: {READ_ONLY.text}.", READ_ONLY.recovery)
    elif allowed(parent, os.W_OK | os.X_OK):
        yield ok(f"{home} (does not exist yet; created at the first start)")
    else:
        yield fault(
            f"{home} does not exist, and {parent} cannot be written.", "Set HOLDFAST_HOME to a directory of your own."
        )


def _free_space(home: Path, mode: int) -> Iterator[Finding]:
    free = shutil.disk_usage(home).free
    room = f"{free / 1e9:.1f} GB free"
    if free < FULL_DISK_BYTES:
        yield fault(
            f"{home}: the disk is full ({free / 1e6:.0f} MB free).", "Free some space; nothing can be recorded."
        )
    elif free < LOW_DISK_BYTES:
        yield note(f"{home}: {room}", "Free some space before recording has to stop.")
    elif not mode & OTHERS:
        yield ok(f"{home}, mode {mode:04o}, {room}")


def _private(path: Path) -> Iterator[Finding]:
    if path.name in SECRETS:
        flaw = find_flaw(path) if allowed(path, os.R_OK) or path.is_symlink() else None
        if flaw is not None:
            yield fault(flaw.text, flaw.repair, closed(path, 0o600) if flaw.open_to_others else None)
            return
    try:
        status = path.stat()
    except FileNotFoundError:
        return
    if status.st_uid != os.geteuid():
        yield fault(f"{path} belongs to user {status.st_uid}.", "Give it back to the owner of the data directory.")
    elif status.st_mode & OTHERS:
        mode = stat.S_IMODE(status.st_mode)
        yield fault(f"{path} is open to others (mode {mode:04o}).", f"chmod 600 {path}", closed(path, 0o600))
    elif not allowed(path, os.R_OK):
        yield fault(f"{path} cannot be read by its owner.", f"chmod 600 {path}", closed(path, 0o600))
