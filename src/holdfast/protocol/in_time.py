"""Reading a project's files beside the event loop, for no longer than an agent's hook can wait."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from holdfast.errors import HoldfastError

LIMIT_S = 4.0
"""Less than the five seconds for which a hook waits, so that it is told why."""

Result = TypeVar("Result")
Reading = tuple[Callable[..., object], tuple[Hashable, ...]]

_given_up: dict[Reading, threading.Thread] = {}
"""What nobody waits for any more, and what may still be reading it."""


class ProjectTooSlow(HoldfastError):
    """A project whose files are not read in time."""

    code = "E_PROJECT_TOO_SLOW"


async def in_time(read: Callable[..., Result], *args: Hashable, limit_s: float = LIMIT_S) -> Result:
    """What `read` returns, run in a thread. Raises ProjectTooSlow.

    A thread cannot be ended: it goes on, and what it does is bounded by the sizes of the files and by reading that is
    linear. The limit frees whoever waits, as when a file system stalls. Until that answers again, the same reading is
    refused at once. Each has a thread of its own, which nobody waits for when the daemon ends: those of a project on a
    stalled file system would soon fill a pool, and with it keep every other project waiting.
    """
    reading: Reading = (read, args)
    earlier = _given_up.pop(reading, None)
    if earlier is not None and earlier.is_alive():
        _given_up[reading] = earlier
        raise _too_slow("are still not read")
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Any] = loop.create_future()

    def deliver(value: object, error: BaseException | None) -> None:
        if not result.done():
            result.set_result(value) if error is None else result.set_exception(error)

    def work() -> None:
        value, error = None, None
        try:
            value = read(*args)
        except BaseException as raised:  # noqa: BLE001 - for whoever waits, as if it had run there
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
