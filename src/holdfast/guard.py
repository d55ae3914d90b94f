"""Holding an agent's process: how it is started under guard, known by its pids and ended with all it started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Collection
from hashlib import sha256
from pathlib import Path

from holdfast import guard_process

LAST_WORDS = 20
"""How many lines of an agent's stderr are kept for the message that says why it ended."""
LINE_LIMIT = 500
REPORT_SECONDS = 10.0
END_SECONDS = guard_process.GRACE_SECONDS + guard_process.SWEEP_SECONDS + 3.0
"""How long the guard may take to end the agent and itself."""


def guarded(command: list[str]) -> list[str]:
    """The command that runs `command` under guard."""
    return [sys.executable, "-I", "-S", str(Path(guard_process.__file__).resolve()), *command]


def launcher(folder: Path, program: str, without: Collection[str] = ()) -> Path:
    """An executable file that runs `program` under guard, for a caller that takes a path and adds arguments.

    The variables named in `without` are gone from the guard on: what only the agent lacked, it could read there.
    """
    unset = [word for name in sorted(without) for word in ("-u", name)]
    command = [*(["env", *unset] if unset else []), *guarded([program])]
    text = f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n'
    path = folder / f"guarded-{sha256(text.encode()).hexdigest()[:16]}"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, name = tempfile.mkstemp(dir=folder)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        Path(name).chmod(0o700)
        Path(name).replace(path)  # two daemons may write it at once
    return path


class Grip:
    """What is known of a guarded agent by what came on its stderr, and how to end it."""

    def __init__(self) -> None:
        self.agent_pid: int | None = None
        self._guard_pid: int | None = None
        self._reported = asyncio.Event()
        self._lines: deque[str] = deque(maxlen=LAST_WORDS)

    def read(self, line: str) -> None:
        """Take in one line of stderr."""
        words = line.split()
        if self._guard_pid is None and len(words) == 3 and words[0] == guard_process.REPORT:
            self._guard_pid, self.agent_pid = int(words[1]), int(words[2])
            self._reported.set()
        elif words:
            self._lines.append(line[:LINE_LIMIT].rstrip())

    @property
    def last_words(self) -> str:
        """The end of what the agent said on stderr, in quotes and on one line; nothing where it said nothing."""
        said = " ".join(self._lines).replace('"', "'")
        return '"' + "".join(char if char.isprintable() else " " for char in said) + '"' if said else ""

    async def reported(self) -> None:
        """Wait until the guard has told the pids."""
        async with asyncio.timeout(REPORT_SECONDS):
            await self._reported.wait()

    async def end(self, ended: asyncio.Future[None]) -> None:
        """End the agent with all it started; `ended` is done when the guard's exit has been collected."""
        self._signal(ended, signal.SIGTERM)
        done, _ = await asyncio.wait([ended], timeout=END_SECONDS)
        if not done:
            if self.agent_pid is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.agent_pid, signal.SIGKILL)
            self._signal(ended, signal.SIGKILL)
            await asyncio.wait([ended], timeout=END_SECONDS)

    def _signal(self, ended: asyncio.Future[None], number: int) -> None:
        # Once its exit was collected, the pid may be anybody's.
        if self._guard_pid is not None and not ended.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._guard_pid, number)
