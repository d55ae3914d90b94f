"""Starts an agent's process under guard, tracks its pids, and ends it with everything it started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import sys
from collections import deque
from collections.abc import Collection
from hashlib import sha256
from pathlib import Path

from holdfast.files import write_private
from holdfast.process import guard_process

STDERR_LINES = 20
"""Lines of an agent's stderr that are kept for the message about why it ended."""
LINE_LIMIT = 500
REPORT_SECONDS = 10.0
END_SECONDS = guard_process.GRACE_SECONDS + guard_process.SWEEP_SECONDS + 3.0
"""How long the guard may take to end the agent and itself."""


def guarded(command: list[str]) -> list[str]:
    """Return the command that runs `command` under guard."""
    return [sys.executable, "-I", "-S", str(Path(guard_process.__file__).resolve()), *command]


def launcher(folder: Path, program: str, without: Collection[str] = ()) -> Path:
    """Write an executable file that runs `program` under guard, for a caller that takes a path and adds arguments.

    The variables named in `without` are removed from the guard too: otherwise the agent could read them there.
    """

    unset = [word for name in sorted(without) for word in ("-u", name)]
    command = [*(["env", *unset] if unset else []), *guarded([program])]
    text = f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n'
    path = folder / f"guarded-{sha256(text.encode()).hexdigest()[:16]}"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(path, text, mode=0o700)  # two daemons may write it at once
    return path


class GuardedProcess:
    """A guarded agent: its pids and last output, read from its stderr, and how to end it."""

    def __init__(self) -> None:
        self.agent_pid: int | None = None
        self._guard_pid: int | None = None
        self._reported = asyncio.Event()
        self._lines: deque[str] = deque(maxlen=STDERR_LINES)

    def read(self, line: str) -> None:
        """Handle one line of stderr."""
        words = line.split()
        if self._guard_pid is None and len(words) == 3 and words[0] == guard_process.REPORT:
            self._guard_pid, self.agent_pid = int(words[1]), int(words[2])
            self._reported.set()
        elif words:
            self._lines.append(line[:LINE_LIMIT].rstrip())

    @property
    def last_words(self) -> str:
        """The end of the agent's stderr, quoted and on one line; empty if it wrote nothing."""
        output = " ".join(self._lines).replace('"', "'")
        return '"' + "".join(char if char.isprintable() else " " for char in output) + '"' if output else ""

    async def reported(self) -> None:
        """Wait until the guard has reported the pids."""
        async with asyncio.timeout(REPORT_SECONDS):
            await self._reported.wait()

    async def end(self, ended: asyncio.Future[None]) -> None:
        """End the agent and everything it started; `ended` is done once the guard's exit status was collected."""
        self._signal(ended, signal.SIGTERM)
        done, _ = await asyncio.wait([ended], timeout=END_SECONDS)
        if not done:
            if self.agent_pid is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.agent_pid, signal.SIGKILL)
            self._signal(ended, signal.SIGKILL)
            await asyncio.wait([ended], timeout=END_SECONDS)

    def _signal(self, ended: asyncio.Future[None], number: int) -> None:
        # Once its exit status was collected, the pid may be reused.
        if self._guard_pid is not None and not ended.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._guard_pid, number)
