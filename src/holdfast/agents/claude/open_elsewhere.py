"""Find who else has a conversation open: Claude Code takes no lock, so its own list and its command line are read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from pathlib import Path

from holdfast.process import guard_process
from holdfast.process.alive import is_running, mark_of
from holdfast.text import bounded_json

GUARD = Path(guard_process.__file__).name
OPTIONS = ("--resume", "-r", "--session-id")
LISTED = "sessions"
"""The folder of its configuration in which Claude Code lists the processes at work, each with its session."""


def opened_by(
    session_id: str, config: Path | None = None, *, own: int | None = None, processes: Path = Path("/proc")
) -> int | None:
    """Return a process other than `own` that has this session open, if one is seen.

    Only Linux shows other command lines, and only the list in `config` shows a session that `--continue` chose. Where
    `own` is listed, all are, and no command line needs to be read.
    """
    listed = {} if config is None else dict(_listed(config))
    seen: Iterable[int] = (pid for pid, session in listed.items() if session == session_id)
    if own not in listed:
        seen = chain(seen, _with_option(session_id, processes))
    return next((pid for pid in seen if pid not in (own, os.getpid())), None)


def running(config: Path) -> frozenset[str]:
    """Return the sessions that a process has open, as Claude Code lists them."""
    return frozenset(session for _, session in _listed(config) if isinstance(session, str))


def _listed(config: Path) -> Iterator[tuple[int, object]]:
    """Yield the running processes that Claude Code lists, each with its session."""
    for path in (config / LISTED).glob("*.json"):
        try:
            listed = bounded_json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue  # it ended, or is just being listed: its command line may tell
        if isinstance(listed, dict):
            pid, started = listed.get("pid"), listed.get("procStart")
            # A killed one stays listed, and its pid may be another's by now.
            if isinstance(pid, int) and is_running(pid) and started in (None, mark_of(pid) or started):
                yield pid, listed.get("sessionId")


def _with_option(session_id: str, processes: Path) -> Iterator[int]:
    for entry in processes.glob("[0-9]*"):
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it ended, or belongs to another user
        if _names(session_id, [os.fsdecode(part) for part in arguments]):
            yield int(entry.name)


def _names(session_id: str, arguments: list[str]) -> bool:
    if any(argument.endswith(GUARD) for argument in arguments):
        return False  # a guard on its way out: it has given the lock back, and its agent is gone
    named = any(option in OPTIONS and value == session_id for option, value in pairwise(arguments))
    return named or any(f"{option}={session_id}" in arguments for option in OPTIONS)
