"""Reads a project's files outside the event loop, for no longer than an agent's hook can wait."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeVar

from holdfast.errors import HoldfastError

LIMIT_S = 4.0
"""Less than the five seconds that a hook waits, so that it still gets the error."""

MAX_IDLE = 8
"""Threads that are kept for the next reads: to start one takes as long as most reads."""

Result = TypeVar("Result")
Reading = tuple[Callable[..., object], tuple[Hashable, ...]]

_given_up: dict[Reading, _Job] = {}
"""Reads that were given up, and may still be running."""
_idle: list[_Reader] = []


class _Job:
    """One read; the thread calls it."""

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read
        self._loop = asyncio.get_running_loop()
        self.result: asyncio.Future[Any] = self._loop.create_future()
        self.runs = True

    def __call__(self) -> None:
        value, error = None, None
        try:
            value = self._read()
        except BaseException as raised:  # noqa: BLE001 - raised again in the caller
            error = raised
        self.runs = False
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            self._loop.call_soon_threadsafe(self._deliver, value, error)

    def _deliver(self, value: object, error: BaseException | None) -> None:
        if not self.result.done():
            self.result.set_result(value) if error is None else self.result.set_exception(error)


class _Reader(threading.Thread):
    """A thread that does one read at a time, and waits for the next one unless enough threads wait already."""

    def __init__(self) -> None:
        super().__init__(name="project files", daemon=True)
        self.jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()

    def run(self) -> None:
        while True:
            self.jobs.get()()
            if len(_idle) >= MAX_IDLE:
                return
            _idle.append(self)


class ProjectTooSlow(HoldfastError):
    """A project's files could not be read in time."""

    code = "E_PROJECT_TOO_SLOW"


async def in_time(read: Callable[..., Result], *args: Hashable, limit_s: float = LIMIT_S) -> Result:
    """Run `read` in a thread and return its result. Raises ProjectTooSlow.

    A thread cannot be killed: it keeps running, bounded by the file sizes and linear-time reading. The limit releases
    the caller, for example when a file system stalls. Until that responds again, the same read is refused at once. A
    read that runs has a thread to itself, which does not delay the daemon's exit: in a shared pool, the reads of one
    project on a stalled file system would soon block every other project.
    """
    reading: Reading = (read, args)
    earlier = _given_up.pop(reading, None)
    if earlier is not None and earlier.runs:
        _given_up[reading] = earlier
        raise _too_slow("are still being read")
    job = _Job(partial(read, *args))
    try:
        reader = _idle.pop()
    except IndexError:
        reader = _Reader()
        reader.start()
    reader.jobs.put(job)
    try:
        async with asyncio.timeout(limit_s):
            found: Result = await job.result
            return found
    except TimeoutError:
        if not job.result.cancelled():  # it was `read` that raised it
            raise
        _given_up[reading] = job
        raise _too_slow(f"were not read within {limit_s:g} s") from None


def _too_slow(what: str) -> ProjectTooSlow:
    return ProjectTooSlow(
        f"The project's files {what}.", recovery="Check that its file system answers, then try again."
    )
