"""The daemon's event loop: uvloop, except that it starts programs as asyncio does.

uvloop copies the daemon's page tables for each program (`fork`), and all agents wait meanwhile: measured 15 ms with
100 MB in use. `subprocess` borrows the memory instead (`vfork`), which takes 3 ms.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import threading
from asyncio.base_subprocess import BaseSubprocessTransport
from collections.abc import Callable
from typing import IO, Any

import uvloop


class EventLoop(uvloop.Loop):
    """Runs everything in the daemon."""

    async def subprocess_exec(
        self,
        protocol_factory: Callable[[], Any],
        *args: Any,
        stdin: Any = subprocess.PIPE,
        stdout: Any = subprocess.PIPE,
        stderr: Any = subprocess.PIPE,
        **options: Any,
    ) -> tuple[Any, Any]:
        """Start a program; see `asyncio.loop.subprocess_exec`."""
        protocol, connected = protocol_factory(), self.create_future()
        transport = _Program(self, protocol, args, False, stdin, stdout, stderr, 0, waiter=connected, **options)
        threading.Thread(target=_report_exit, args=(self, transport), name="program", daemon=True).start()
        try:
            await connected
        except BaseException:
            transport.close()
            raise
        return transport, protocol


class _Program(BaseSubprocessTransport):
    """A program and its pipes, on any loop."""

    def _start(
        self, args: Any, shell: bool, stdin: Any, stdout: Any, stderr: Any, bufsize: int, **options: Any
    ) -> None:
        program: Any = subprocess.Popen(  # noqa: S603 - the callers check what they start
            args, shell=shell, stdin=stdin, stdout=stdout, stderr=stderr, bufsize=bufsize, **options
        )
        for name in ("stdin", "stdout", "stderr"):
            if (file := getattr(program, name)) is not None:
                setattr(program, name, _Pipe(file))
        self._proc = program


class _Pipe:
    """A pipe's end whose descriptor is closed once: by the loop that took it, or else here.

    uvloop closes the descriptor of a file that it was given, and then the file, which closes the same number again. By
    then another thread may have opened something under that number: the database, or another agent's pipe.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._descriptor = os.dup(file.fileno())
        self._taken = False
        file.close()

    def fileno(self) -> int:
        """Hand the descriptor over."""
        self._taken = True
        return self._descriptor

    def close(self) -> None:
        """Close the descriptor if nobody took it."""
        if not self._taken:
            self._taken = True
            os.close(self._descriptor)

    __del__ = close


def _report_exit(loop: asyncio.AbstractEventLoop, transport: Any) -> None:
    exit_code = transport.get_extra_info("subprocess").wait()
    with contextlib.suppress(RuntimeError):  # the daemon has ended
        loop.call_soon_threadsafe(transport._process_exited, exit_code)
