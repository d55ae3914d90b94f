"""Where a daemon is found: its data directory, its socket, and what it left there.

The path of a unix socket may have about 100 bytes. When the data directory is deeper than that, the daemon
puts its socket in a private runtime directory and writes the socket's path in a pointer file at home.
"""

from __future__ import annotations

import os
import stat

MAX_SOCKET_PATH = 100


def home(given: str | None = None) -> str:
    """The data directory: the one given, else $HOLDFAST_HOME, else ~/.holdfast."""
    chosen = given or os.environ.get("HOLDFAST_HOME") or "~/.holdfast"
    return os.path.abspath(os.path.expanduser(chosen))


def foreign_owner(home: str) -> int | None:
    """The user id of another user who owns the data directory; None where it is ours or not there."""
    try:
        owner = os.stat(home).st_uid
    except OSError:
        return None
    return None if owner == os.geteuid() else owner


def socket_path(home: str) -> str:
    """Where to look for the daemon's socket; nothing may be there."""
    direct = _direct(home)
    if _fits(direct):
        return direct
    try:
        with open(_pointer(home), encoding="utf-8", errors="surrogateescape") as pointer:
            return pointer.read(4096).strip() or direct
    except FileNotFoundError:
        return direct


def socket_place(home: str) -> str:
    """Where the daemon is to put its socket; makes the private directory and the pointer when needed."""
    direct = _direct(home)
    if _fits(direct):
        return direct
    directory = _runtime_directory(home)
    path = os.path.join(directory, "daemon.sock")
    _private(directory)
    _write_pointer(home, path)
    return path


def is_ours(path: str) -> bool:
    """Whether a socket of this user's own is at `path`; raises OSError when nothing is there."""
    found = os.stat(path)
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.getuid()


def working_directory() -> str:
    """Where this process was started; empty when that directory is gone."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def stopped_marker(home: str) -> str:
    """The file `holdfast stop` leaves, so that running relays do not start a daemon again."""
    return os.path.join(home, "stopped")


def last_error(home: str) -> str:
    """The file in which a daemon that could not start says why."""
    return os.path.join(home, "daemon.err")


def _direct(home: str) -> str:
    return os.path.join(home, "daemon.sock")


def _pointer(home: str) -> str:
    return os.path.join(home, "daemon.sock.path")


def _fits(path: str) -> bool:
    return len(os.fsencode(path)) <= MAX_SOCKET_PATH


def _runtime_directory(home: str) -> str:
    import hashlib  # only deep homes need it, and it would cost every start

    name = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.path.isabs(runtime) and _is_own_directory(runtime):
        directory = os.path.join(runtime, f"holdfast-{name}")
        if _fits(os.path.join(directory, "daemon.sock")):
            return directory
    return f"/tmp/holdfast-{os.getuid()}-{name}"  # noqa: S108 - checked to be ours before use


def _is_own_directory(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _private(directory: str) -> None:
    """Make `directory` for this user alone, or refuse one that somebody else prepared."""
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        if not _is_own_directory(directory):
            raise PermissionError(
                f"{directory} is not a directory of this user. Remove it, or choose a shorter HOLDFAST_HOME."
            ) from None
    os.chmod(directory, 0o700)


def _write_pointer(home: str, path: str) -> None:
    fresh = f"{_pointer(home)}.{os.getpid()}"
    with open(fresh, "w", encoding="utf-8", errors="surrogateescape") as pointer:
        pointer.write(path + "\n")
        pointer.flush()
        os.fsync(pointer.fileno())
    os.replace(fresh, _pointer(home))
