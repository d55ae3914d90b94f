"""The daemon's event loop starts programs without stopping everybody for it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from holdfast.daemon.event_loop import EventLoop

forks: list[int] = []
os.register_at_fork(before=lambda: forks.append(os.getpid()))


def test_a_program_is_started_without_copying_the_daemon() -> None:
    async def start() -> bytes:
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-c", "print(input()[::-1])", stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        told, _ = await program.communicate(b"holdfast\n")
        assert program.returncode == 0
        return told

    before = len(forks)
    assert _run(start()) == b"tsafdloh\n"
    assert len(forks) == before


def test_how_a_program_ended_is_told_whatever_ended_it() -> None:
    async def ends() -> list[int | None]:
        failed = await asyncio.create_subprocess_exec(sys.executable, "-c", "raise SystemExit(3)")
        waits = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=subprocess.PIPE)
        waits.send_signal(signal.SIGKILL)
        return [await failed.wait(), await waits.wait()]

    assert _run(ends()) == [3, -signal.SIGKILL]


def test_a_program_that_is_not_there_is_an_error() -> None:
    async def start() -> None:
        with pytest.raises(FileNotFoundError):
            await asyncio.create_subprocess_exec("/no/such/program", stdout=subprocess.PIPE)

    _run(start())


def _run(work: object) -> object:
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        return runner.run(work)  # type: ignore[arg-type]
