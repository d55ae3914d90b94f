"""Long work that nobody waits for, in a thread that gets the processor when nobody else wants it."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

LOWEST = 19
"""The priority, as `nice` counts."""


STOP_SECONDS = 0.01
"""How long work that was told to stop may go on before it is told again."""


async def at_low_priority(work: Callable[[], T], stop: Callable[[], object]) -> T:
    """Run `work` in a thread of its own; if the caller is cancelled, `stop` is called until it has ended.

    While it runs Python, others wait for it to get the processor: it is for work that is done outside the interpreter.
    """
    threads = ThreadPoolExecutor(1, "low priority", _step_back)
    running = asyncio.get_running_loop().run_in_executor(threads, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            stop()  # again, because it may not have begun when it was told
            await asyncio.wait([running], timeout=STOP_SECONDS)
        running.exception()
        raise
    finally:
        threads.shutdown(wait=False)


def _step_back() -> None:
    if sys.platform == "linux":  # elsewhere a priority is that of the whole process
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST)
