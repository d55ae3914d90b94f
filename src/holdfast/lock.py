"""One daemon per data directory: a lock that dies with its holder and says who that is."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from holdfast.errors import DaemonRunning, HoldfastError
from holdfast.relay import place
from holdfast.version import __version__

HANDED_DOWN = "HOLDFAST_LOCK"
"""Names the descriptor of the lock for a program that this process becomes."""


class ForeignHome(HoldfastError):
    """The data directory belongs to another user."""

    code = "E_FOREIGN_HOME"


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a data directory."""

    pid: int
    version: str
    by_hand: bool
    """Started by a person, not by a relay or a hook."""
    purpose: str = "daemon"


class HomeLock:
    """An exclusive hold on a data directory."""

    def __init__(self, home: Path, descriptor: int) -> None:
        self._path = home / "lock"
        self._descriptor = descriptor

    @staticmethod
    def take(home: Path, *, by_hand: bool, purpose: str = "daemon") -> HomeLock:
        """Take the lock, or raise DaemonRunning naming the holder."""
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
        return HomeLock(home, descriptor)._signed(by_hand, purpose)

    @staticmethod
    def handed_down(home: Path, *, by_hand: bool) -> HomeLock | None:
        """The lock as this process's earlier program left it, so that nobody could take it between the two."""
        text = os.environ.pop(HANDED_DOWN, "")
        if not text.isdecimal():
            return None
        lock = HomeLock(home, int(text))
        os.set_inheritable(lock._descriptor, False)
        return lock._signed(by_hand, "daemon") if lock.still_ours() else None

    def hand_down(self) -> None:
        """Keep it for the program that this process becomes."""
        os.set_inheritable(self._descriptor, True)
        os.environ[HANDED_DOWN] = str(self._descriptor)

    def still_ours(self) -> bool:
        """Whether the data directory is still the one that was locked (it may have been deleted or replaced)."""
        try:
            there, here = self._path.stat(), os.fstat(self._descriptor)
        except FileNotFoundError:
            return False
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

    def _signed(self, by_hand: bool, purpose: str) -> HomeLock:
        """Say who holds it."""
        text = json.dumps(asdict(Holder(os.getpid(), __version__, by_hand, purpose)))
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode(), 0)
        return self

    def release(self) -> None:
        """Give the data directory back."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


def read_holder(home: Path) -> Holder | None:
    """Who holds the lock, as it wrote itself; None when nobody said so."""
    try:
        return Holder(**json.loads((home / "lock").read_text()))
    except (OSError, ValueError, TypeError):
        return None


def current_holder(home: Path) -> Holder | None:
    """Who holds the lock now, whether it answers or not; None when nobody does. Changes nothing."""
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
    """Create the data directory, for its owner alone; raises ForeignHome where it is another user's."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    check_home_owner(home)
    if home.stat().st_mode & 0o077:
        home.chmod(0o700)


def check_home_owner(home: Path) -> None:
    """Refuse a data directory of another user: what it holds would be believed, and what is said would be read there.

    Root is refused as well: what it writes there its owner could not read any more.
    """
    owner = place.foreign_owner(str(home))
    if owner is not None:
        raise ForeignHome(
            f"{home} belongs to user {owner}, this is user {os.geteuid()}.",
            recovery="Run Holdfast as its owner (sudo -u), or set HOLDFAST_HOME to a directory of your own.",
        )
