"""Waiting for news from the store, without asking it all the time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from holdfast.store import Store


class Wakeups:
    """Notices commits for as long as the `with` block lasts. Clear, look, and wait: so nothing is missed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._unlisten: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        self._unlisten = self._store.listen(self._wake)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._unlisten()

    def clear(self) -> None:
        """What is committed from here on wakes."""
        self._woken.clear()

    async def wait(self, seconds: float) -> None:
        """Until something was committed, or the time is up."""
        with suppress(TimeoutError):
            # Not wait_for: before Python 3.12 it takes a cancellation for nothing when the event comes with it.
            async with asyncio.timeout(max(0.0, seconds)):
                await self._woken.wait()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # that loop has ended: nobody waits any more
            self._loop.call_soon_threadsafe(self._woken.set)
