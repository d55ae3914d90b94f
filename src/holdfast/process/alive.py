"""Inspects other processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def is_running(pid: int) -> bool:
    """Return whether this user has a process with this pid."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError, OverflowError):  # gone, another user's by now, or an impossible pid
        return False
    return not _is_zombie(pid)


def exists(pid: int) -> bool:
    """Return whether there is a process with this pid, of any user."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def mark_of(pid: int) -> str | None:
    """Return the process's start time, which tells it from a later one with the same pid; None if unavailable."""
    fields = stat_of(pid)
    return fields[19].decode("ascii") if len(fields) > 19 else None


def ancestors(pid: int) -> Iterator[int]:
    """Yield the process itself and its ancestors, as far as the system reveals them."""
    seen: set[int] = set()
    while pid > 0 and pid not in seen:
        yield pid
        seen.add(pid)
        parent = stat_of(pid)[1:2]
        pid = int(parent[0]) if parent else 0


def name_of(pid: int) -> str:
    """Return the name of a process's program, which it may have chosen itself; empty if the system does not say."""
    try:
        return os.fsdecode(Path(f"/proc/{pid}/comm").read_bytes()).strip()
    except OSError:
        return ""


def initial_variable(pid: int, name: str) -> str | None:
    """Return a variable of a process's environment at its start; None if it is unset or cannot be read."""
    try:
        content = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    start = os.fsencode(name) + b"="
    variable = next((entry for entry in content.split(b"\0") if entry.startswith(start)), None)
    return None if variable is None else os.fsdecode(variable[len(start) :])


def _is_zombie(pid: int) -> bool:
    """Return whether it is a zombie: in a container without an init those keep their pid forever."""
    return stat_of(pid)[:1] in ([b"Z"], [b"X"])


def stat_of(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat from the state on; empty if the process or /proc does not exist."""
    try:
        content = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return []
    return content[content.rfind(b")") + 1 :].split()  # the name before the last parenthesis may contain anything
