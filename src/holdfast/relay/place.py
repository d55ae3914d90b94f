"""Locations of a daemon's data directory, socket and marker files.

The path of a unix socket may have about 100 bytes. If the data directory's path is longer, the daemon puts
its socket in a private runtime directory and writes the socket's path to a pointer file in the data directory.
"""

from __future__ import annotations

import os
import stat

MAX_SOCKET_PATH = 100


def home(given: str | None = None) -> str:
    """Return the data directory: the one given, $HOLDFAST_HOME, or ~/.holdfast."""
    chosen = given or os.environ.get("HOLDFAST_HOME") or "~/.holdfast"
    return os.path.abspath(os.path.expanduser(chosen))


def foreign_owner(home: str) -> int | None:
    """Return the user id of the data directory's owner if that is another user; None if it is ours or missing."""
    try:
        owner = os.stat(home).st_uid
    except OSError:
        return None
    return None if owner == os.geteuid() else owner


def socket_path(home: str) -> str:
    """Return where to look for the daemon's socket, which may not exist."""
    direct = _direct(home)
    if _fits(direct):
        return direct
    try:
        with open(_pointer(home), encoding="utf-8", errors="surrogateescape") as pointer:
            return pointer.read(4096).strip() or direct
    except FileNotFoundError:
        return direct


def socket_place(home: str) -> str:
    """Return where the daemon puts its socket; creates the private directory and the pointer file if needed."""
    direct = _direct(home)
    if _fits(direct):
        return direct
    directory = _runtime_directory(home)
    path = os.path.join(directory, "daemon.sock")
    _private(directory)
    _write_pointer(home, path)
    return path


def is_ours(path: str) -> bool:
    """Return whether `path` is a socket of this user; raises OSError if it does not exist."""
    status = os.stat(path)
    return stat.S_ISSOCK(status.st_mode) and status.st_uid == os.getuid()


def working_directory() -> str:
    """Return the current directory; empty if it was deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def stopped_marker(home: str) -> str:
    """Return the file that `holdfast stop` leaves so that running relays do not restart the daemon."""
    return os.path.join(home, "stopped")


def missed_hook(home: str) -> str:
    """Return the file that the launcher leaves when a hook was called and no Holdfast was found."""
    return os.path.join(home, "missed-hook")


def last_error(home: str) -> str:
    """Return the file to which a daemon that could not start writes the reason."""
    return os.path.join(home, "daemon.err")


def _direct(home: str) -> str:
    return os.path.join(home, "daemon.sock")


def _pointer(home: str) -> str:
    return os.path.join(home, "daemon.sock.path")


def _fits(path: str) -> bool:
    return len(os.fsencode(path)) <= MAX_SOCKET_PATH


def _runtime_directory(home: str) -> str:
    import hashlib  # imported late: only long paths need it, and it slows the start

    name = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.path.isabs(runtime) and _is_own_directory(runtime):
        directory = os.path.join(runtime, f"holdfast-{name}")
        if _fits(os.path.join(directory, "daemon.sock")):
            return directory
    return f"/tmp/holdfast-{os.getuid()}-{name}"  # noqa: S108 - checked to be ours before use


def _is_own_directory(path: str) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def _private(directory: str) -> None:
    """Create `directory`, private to this user, or refuse one that another user created."""
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
