"""Runs a program with limits on time and output, and leaves none of its processes behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.lazy_dataclass import dataclass
from holdfast.text.quoting import in_quotes

DRAIN_S = 2.0
"""How long the output may stay open after the exit, held by a process that left the program's process group."""


class CannotRun(Exception):
    """A program that could not be started; the message says why."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a program ended and what it wrote."""

    exit_code: int | None
    """None if it was stopped at one of its limits."""
    output: bytes
    errors: bytes
    too_long: bool
    """Whether it was stopped because it wrote too much."""

    @property
    def timed_out(self) -> bool:
        """Whether it was stopped because it took too long."""
        return self.exit_code is None and not self.too_long


class _OutputProtocol(asyncio.SubprocessProtocol):
    """Collects a program's output and notices its exit."""

    def __init__(self, most: int, *, keep_end: bool) -> None:
        self.output = bytearray()
        self.errors = bytearray()
        self.too_long = False
        self.over = asyncio.Event()
        self.closed = asyncio.Event()
        self._most = most
        self._keep_end = keep_end

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        buffer = self.output if fd == 1 else self.errors
        buffer += data
        if len(buffer) <= self._most:
            return
        if fd == 1 and not self._keep_end:
            self.too_long = True
            self.over.set()
        del buffer[: -self._most]

    def process_exited(self) -> None:
        self.over.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()


async def run(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float, most: int, one_stream: bool = False
) -> Ending:
    """Run a program without a shell and without input. Raises CannotRun.

    `one_stream` merges stderr into stdout and keeps the last `most` bytes; otherwise a program whose output is longer
    than `most` bytes is stopped.
    """
    try:
        transport, watch = await asyncio.get_running_loop().subprocess_exec(
            lambda: _OutputProtocol(most, keep_end=one_stream),
            *argv,
            cwd=str(cwd),
            env=dict(env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT if one_stream else asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) and failure.strerror else str(failure)
        raise CannotRun(f"{in_quotes(argv[0], 200)} cannot be started: {reason}.") from failure
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await watch.over.wait()
        exit_code = None if watch.too_long else transport.get_returncode()
    finally:
        # The group outlives its leader while anything that the program started is still in it.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(transport.get_pid(), signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await watch.closed.wait()
        transport.close()
    return Ending(exit_code, bytes(watch.output), bytes(watch.errors), watch.too_long)
