"""Looking at other processes of this user."""

from __future__ import annotations

import os
from pathlib import Path


def is_running(pid: int) -> bool:
    """Whether this user has a process with this number."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):  # gone, or somebody else's process has the number by now
        return False
    except OverflowError:  # it comes from outside, and no system gives such a number
        return False
    return True


def exists(pid: int) -> bool:
    """Whether there is a process with this number, whoever's it is."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def mark_of(pid: int) -> str | None:
    """What tells this process from a later one of the same number: when it began, where the system tells."""
    try:
        told = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:  # gone, or a system without /proc
        return None
    # The name before the last parenthesis may hold anything; the beginning is the 20th field after it.
    fields = told[told.rfind(b")") + 1 :].split()
    return fields[19].decode("ascii") if len(fields) > 19 else None
