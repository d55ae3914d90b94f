"""Threads that read the SQLite file, each with a connection of its own.

To hand a job to a thread and back takes longer than most reads, and threads that run Python at the same time slow each
other down. So the reads of one turn of the event loop share a thread, as writes share a commit. One that took long the
last time has a thread to itself.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import apsw

from holdfast.store import Tx
from holdfast.store.sqlite_job import Job, deliver

T = TypeVar("T")

READERS = 4
LONG_SECONDS = 0.002
"""How long a read may take to share a thread with others."""

Run = Callable[[apsw.Connection, Callable[[Tx], Any]], Any]


class Readers:
    """A few threads that run reads."""

    def __init__(self, connect: Callable[[], apsw.Connection], run: Run, ended: Callable[[int], None]) -> None:
        """`run` runs a closure on a connection; `ended` is called with how many reads have ended."""
        self._connect = connect
        self._run = run
        self._ended = ended
        self._groups: queue.SimpleQueue[list[Job] | None] = queue.SimpleQueue()
        self._asked: dict[asyncio.AbstractEventLoop, list[Job]] = {}
        """The reads of this turn of each event loop."""
        self._long: set[int] = set()
        """The functions that took long the last time."""
        names = (f"store-read_{number}" for number in range(READERS))
        self._threads = [threading.Thread(target=self._serve, name=name, daemon=True) for name in names]
        for thread in self._threads:
            thread.start()

    async def read(self, fn: Callable[[Tx], T]) -> T:
        """Run `fn` in one of the threads."""
        loop = asyncio.get_running_loop()
        job = Job(fn, loop.create_future())
        if _function(fn) in self._long:
            self._groups.put([job])
        elif loop in self._asked:
            self._asked[loop].append(job)
        else:
            self._asked[loop] = [job]
            loop.call_soon(self._send, loop)
        result: T = await job.done
        return result

    def close(self) -> None:
        """Finish the queued reads and end the threads."""
        for _ in self._threads:
            self._groups.put(None)
        for thread in self._threads:
            thread.join()

    def _send(self, loop: asyncio.AbstractEventLoop) -> None:
        self._groups.put(self._asked.pop(loop))

    def _serve(self) -> None:
        connection: list[apsw.Connection] = []
        while (group := self._groups.get()) is not None:
            rest = self._run_group(connection, group)
            done = group[: len(group) - len(rest)]
            del group  # until the next one comes, its results would stay in memory
            for job in rest:
                self._groups.put([job])
            self._ended(len(done))
            deliver(done)
            del done

    def _run_group(self, connection: list[apsw.Connection], group: list[Job]) -> list[Job]:
        """Run the reads of a group one after another; returns those that are left after one that took long."""
        for number, job in enumerate(group, 1):
            began = time.perf_counter()
            try:
                if not connection:
                    connection.append(self._connect())
                    began = time.perf_counter()
                job.value = self._run(connection[0], job.fn)
            except BaseException as error:  # noqa: BLE001 - handed to its caller
                job.error = error
            if time.perf_counter() - began < LONG_SECONDS:
                self._long.discard(_function(job.fn))
                continue
            self._long.add(_function(job.fn))
            return group[number:]
        return []


def _function(fn: Callable[..., Any]) -> int:
    """Return what tells the function apart in which a closure was written."""
    while isinstance(fn, partial):
        fn = fn.func
    return id(getattr(fn, "__code__", fn))  # code itself is hashed anew each time, by all that is in it
