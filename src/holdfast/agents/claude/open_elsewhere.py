"""Find conversations that a user has open: Claude Code takes no lock, so its command line has to be read."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

from holdfast.process import guard_process

GUARD = Path(guard_process.__file__).name
OPTIONS = ("--resume", "-r", "--session-id")


def opened_by(session_id: str, processes: Path = Path("/proc")) -> int | None:
    """Return the process that has this session open, if one is seen; only Linux shows other command lines."""
    for entry in processes.glob("[0-9]*"):
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it ended, or belongs to another user
        if int(entry.name) != os.getpid() and _names(session_id, [os.fsdecode(part) for part in arguments]):
            return int(entry.name)
    return None


def _names(session_id: str, arguments: list[str]) -> bool:
    if any(argument.endswith(GUARD) for argument in arguments):
        return False  # a guard on its way out: it has given the lock back, and its agent is gone
    named = any(option in OPTIONS and value == session_id for option, value in pairwise(arguments))
    return named or any(f"{option}={session_id}" in arguments for option in OPTIONS)
