"""Reads a project's files outside the event loop, for no longer than an agent's hook can wait."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from holdfast.errors import HoldfastError

LIMIT_S = 4.0
"""Less than the five seconds that a hook waits, so that it still gets the error."""

Result = TypeVar("Result")
Reading = tuple[Callable[..., object], tuple[Hashable, ...]]

_given_up: dict[Reading, threading.Thread] = {}
"""Reads that were given up, and the threads that may still be running them."""


class ProjectTooSlow(HoldfastError):
    """A project's files could not be read in time."""

    code = "E_PROJECT_TOO_SLOW"


async def in_time(read: Callable[..., Result], *args: Hashable, limit_s: float = LIMIT_S) -> Result:
    """Run `read` in a thread and return its result. Raises ProjectTooSlow.

    A thread cannot be killed: it keeps running, bounded by the file sizes and linear-time reading. The limit releases
    the caller, for example when a file system stalls. Until that responds again, the same read is refused at once. Each
    read has its own thread, which does not delay the daemon's exit: in a shared pool, the reads of one project on a
    stalled file system would soon block every other project.
    """
    reading: Reading = (read, args)
    earlier = _given_up.pop(reading, None)
    if earlier is not None and earlier.is_alive():
        _given_up[reading] = earlier
        raise _too_slow("are still being read")
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Any] = loop.create_future()

    def deliver(value: object, error: BaseException | None) -> None:
        if not result.done():
            result.set_result(value) if error is None else result.set_exception(error)

    def work() -> None:
        value, error = None, None
        try:
            value = read(*args)
        except BaseException as raised:  # noqa: BLE001 - raised again in the caller
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(deliver, value, error)

    thread = threading.Thread(target=work, name="project files", daemon=True)
    thread.start()
    try:
        async with asyncio.timeout(limit_s):
            found: Result = await result
            return found
    except TimeoutError:
        if not result.cancelled():  # it was `read` that raised it
            raise
        _given_up[reading] = thread
        raise _too_slow(f"were not read within {limit_s:g} s") from None


def _too_slow(what: str) -> ProjectTooSlow:
    return ProjectTooSlow(
        f"The project's files {what}.", recovery="Check that its file system answers, then try again."
    )
