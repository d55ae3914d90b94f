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
MAX_LISTED_BYTES = 64 * 1024


def opened_by(
    session_id: str, config: Path | None = None, *, own: int | None = None, processes: Path = Path("/proc")
) -> int | None:
    """Return a process other than `own` that has this session open, if one is seen.

    Only Linux shows other command lines, and only the list in `config` shows a session that `--continue` chose. Where
    `own` is listed, all are, and no command line needs to be read.
    """
    found = () if config is None else _listed(config, session_id)
    listed = [(pid, started) for pid, session, started in found if session == session_id]
    seen: Iterable[int] = (pid for pid, started in listed if pid != own and _is_still(pid, started))
    if own not in {pid for pid, _ in listed}:
        seen = chain(seen, _with_option(session_id, processes))
    return next((pid for pid in seen if pid not in (own, os.getpid())), None)


def running(config: Path) -> frozenset[str]:
    """Return the sessions that a process has open, as Claude Code lists them."""
    return frozenset(session for pid, session, started in _listed(config) if _is_still(pid, started))


def _listed(config: Path, naming: str = "") -> Iterator[tuple[int, str, object]]:
    """Yield the processes that Claude Code lists, each with its session and its start time; they may have ended.

    With `naming`, an ask waits for this, and each agent of the user has a file: only those with this text are parsed.
    """
    for path in _files(config / LISTED, ".json"):
        try:
            content = _content(path)
            listed = bounded_json.loads(content) if naming.encode() in content else None
        except (OSError, ValueError):
            continue  # it ended, or is just being listed: its command line may tell
        if isinstance(listed, dict):
            pid, session = listed.get("pid"), listed.get("sessionId")
            if isinstance(pid, int) and isinstance(session, str):
                yield pid, session, listed.get("procStart")


def _is_still(pid: int, started: object) -> bool:
    """Return whether a listed process runs: a killed one stays listed, and its pid may be another's by now."""
    return is_running(pid) and started in (None, mark_of(pid) or started)


def _files(folder: Path, suffix: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.name.endswith(suffix)]
    except OSError:
        return []


def _content(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(descriptor, MAX_LISTED_BYTES)
    finally:
        os.close(descriptor)


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
        return False  # a guard that is exiting: it has released the lock, and its agent is gone
    named = any(option in OPTIONS and value == session_id for option, value in pairwise(arguments))
    return named or any(f"{option}={session_id}" in arguments for option in OPTIONS)
