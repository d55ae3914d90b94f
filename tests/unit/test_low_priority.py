"""Work that nobody waits for gives way to all other work, and ends when the daemon does."""

from __future__ import annotations

import asyncio
import os
import sys
import threading

import pytest

from holdfast.process.low_priority import LOWEST, at_low_priority


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a priority is that of the whole process")
def test_work_that_nobody_waits_for_steps_back_and_nothing_else_does() -> None:
    def own() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    async def scenario() -> None:
        usual = own()
        assert await at_low_priority(own, lambda: None) == LOWEST
        assert own() == usual
        assert await asyncio.to_thread(own) == usual

    asyncio.run(scenario())


def test_an_error_reaches_the_caller() -> None:
    def work() -> None:
        raise LookupError("nothing there")

    with pytest.raises(LookupError, match="nothing there"):
        asyncio.run(at_low_priority(work, lambda: None))


def test_a_caller_that_is_cancelled_ends_the_work() -> None:
    began, stopped, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        stopped.wait(60)
        ended.set()

    async def scenario() -> None:
        task = asyncio.ensure_future(at_low_priority(work, stopped.set))
        assert await asyncio.to_thread(began.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(ended.wait, 60)

    asyncio.run(scenario())
