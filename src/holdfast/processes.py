"""Looking at other processes of this user."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def is_running(pid: int) -> bool:
    """Whether this user has a process with this number."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):  # gone, or somebody else's process has the number by now
        return False
    except OverflowError:  # it comes from outside, and no system gives such a number
        return False
    return not _has_ended(pid)


def exists(pid: int) -> bool:
    """Whether there is a process with this number, whoever's it is."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return not _has_ended(pid)


def mark_of(pid: int) -> str | None:
    """What tells this process from a later one of the same number: when it began, where the system tells."""
    fields = _stat(pid)
    return fields[19].decode("ascii") if len(fields) > 19 else None


def ancestors(pid: int) -> Iterator[int]:
    """The process itself and those that it descends from; no further than the system tells."""
    seen: set[int] = set()
    while pid > 0 and pid not in seen:
        yield pid
        seen.add(pid)
        parent = _stat(pid)[1:2]
        pid = int(parent[0]) if parent else 0


def began_with(pid: int, name: str) -> str | None:
    """The variable of a process's environment as it was when it began; None where there is none, or no telling."""
    try:
        told = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    start = os.fsencode(name) + b"="
    found = next((entry for entry in told.split(b"\0") if entry.startswith(start)), None)
    return None if found is None else os.fsdecode(found[len(start) :])


def _has_ended(pid: int) -> bool:
    """Whether it has ended and nobody asked how: in a container without an init it keeps its number for ever."""
    return _stat(pid)[:1] in ([b"Z"], [b"X"])


def _stat(pid: int) -> list[bytes]:
    """What the system tells of a process, from its state on; nothing where it is gone, or there is no /proc."""
    try:
        told = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return []
    return told[told.rfind(b")") + 1 :].split()  # the name before the last parenthesis may hold anything
