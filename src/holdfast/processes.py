"""Looking at other processes of this user."""

from __future__ import annotations

import os


def is_running(pid: int) -> bool:
    """Whether this user has a process with this number."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):  # gone, or somebody else's process has the number by now
        return False
    return True
