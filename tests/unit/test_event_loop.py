"""The daemon's event loop starts programs without stopping everybody for it."""

from __future__ import annotations

import asyncio
import gc
import io
import os
import signal
import subprocess
import sys
from typing import Any, ClassVar

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


class WatchedPipe(io.FileIO):
    """A pipe's end that notes when somebody else has closed its descriptor before."""

    closed_before: ClassVar[list[str]] = []

    def close(self) -> None:
        if not self.closed:
            try:
                os.fstat(self.fileno())
            except OSError:
                self.closed_before.append(self.mode)
        super().close()


class WatchedProgram(subprocess.Popen[bytes]):
    """A program whose pipes are watched."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name, mode in (("stdin", "wb"), ("stdout", "rb"), ("stderr", "rb")):
            if (file := getattr(self, name)) is not None:
                setattr(self, name, WatchedPipe(os.dup(file.fileno()), mode))
                file.close()


def test_no_descriptor_is_closed_twice_because_another_thread_may_have_opened_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second close would take a file away from whoever got its number: another agent, or the database."""
    monkeypatch.setattr(subprocess, "Popen", WatchedProgram)

    async def start() -> None:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        program = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(input())", **pipes)
        assert await program.communicate(b"holdfast\n") == (b"holdfast\n", b"")
        killed = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", **pipes)
        killed.kill()
        assert await killed.wait() == -signal.SIGKILL

    before = len(os.listdir("/dev/fd"))
    _run(start())
    assert WatchedPipe.closed_before == []
    gc.collect()
    assert len(os.listdir("/dev/fd")) == before


def _run(work: object) -> object:
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        return runner.run(work)  # type: ignore[arg-type]
