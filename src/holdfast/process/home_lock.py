"""Ensures one daemon per data directory: a lock that dies with its holder and names it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from dataclasses import asdict
from pathlib import Path

from holdfast.errors import DaemonRunning, HoldfastError
from holdfast.lazy_dataclass import dataclass
from holdfast.relay import place
from holdfast.version import __version__

INHERITED_LOCK = "HOLDFAST_LOCK"
"""Variable with the lock's descriptor, for the program that this process execs."""


class ForeignHome(HoldfastError):
    """The data directory belongs to another user."""

    code = "E_FOREIGN_HOME"


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a data directory."""

    pid: int
    version: str
    by_hand: bool
    """Started by a person, not by a relay or a hook."""
    purpose: str = "daemon"


class HomeLock:
    """An exclusive lock on a data directory."""

    def __init__(self, home: Path, descriptor: int) -> None:
        self._path = home / "lock"
        self._descriptor = descriptor

    @staticmethod
    def take(home: Path, *, by_hand: bool, purpose: str = "daemon") -> HomeLock:
        """Take the lock; raises DaemonRunning, which names the holder."""
        make_home(home)
        descriptor = os.open(home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            holder = read_holder(home)
            who = f"holdfast {holder.version}, {holder.purpose}, process {holder.pid}" if holder else "another process"
            raise DaemonRunning(
                f"{home} is held by {who}.", recovery="`holdfast status` shows it, `holdfast stop` ends it."
            ) from None
        return HomeLock(home, descriptor)._write_holder(by_hand, purpose)

    @staticmethod
    def handed_down(home: Path, *, by_hand: bool) -> HomeLock | None:
        """Return the lock inherited across an exec, during which it stayed taken; None if there is none."""
        text = os.environ.pop(INHERITED_LOCK, "")
        if not text.isdecimal():
            return None
        lock = HomeLock(home, int(text))
        os.set_inheritable(lock._descriptor, False)
        return lock._write_holder(by_hand, "daemon") if lock.still_ours() else None

    def hand_down(self) -> None:
        """Keep the lock across the exec of another program."""
        os.set_inheritable(self._descriptor, True)
        os.environ[INHERITED_LOCK] = str(self._descriptor)

    def still_ours(self) -> bool:
        """Return whether the data directory is still the one that was locked (not deleted or replaced)."""
        try:
            there, here = self._path.stat(), os.fstat(self._descriptor)
        except FileNotFoundError:
            return False
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

    def _write_holder(self, by_hand: bool, purpose: str) -> HomeLock:
        """Write the holder into the lock file."""
        text = json.dumps(asdict(Holder(os.getpid(), __version__, by_hand, purpose)))
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode(), 0)
        return self

    def release(self) -> None:
        """Release the data directory."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


def read_holder(home: Path) -> Holder | None:
    """Return the holder as written in the lock file; None if there is none."""
    try:
        return Holder(**json.loads((home / "lock").read_text()))
    except (OSError, ValueError, TypeError):
        return None


def current_holder(home: Path) -> Holder | None:
    """Return the current holder of the lock, responsive or not; None if it is free. Changes nothing."""
    try:
        descriptor = os.open(home / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return read_holder(home) or Holder(0, "of unknown version", by_hand=False, purpose="unknown")
    finally:
        os.close(descriptor)
    return None


def make_home(home: Path) -> None:
    """Create the data directory, private to its owner; raises ForeignHome if it belongs to another user."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    check_home_owner(home)
    if home.stat().st_mode & 0o077:
        home.chmod(0o700)


def check_home_owner(home: Path) -> None:
    """Refuse a data directory of another user: that user could forge its contents and read what is stored there.

    Root is refused as well: the owner could no longer read the files that root creates.
    """
    owner = place.foreign_owner(str(home))
    if owner is not None:
        raise ForeignHome(
            f"{home} belongs to user {owner}, this is user {os.geteuid()}.",
            recovery="Run Holdfast as its owner (sudo -u), or set HOLDFAST_HOME to a directory of your own.",
        )
