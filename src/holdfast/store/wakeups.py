"""Waiting for commits without polling the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from holdfast.store import Store


class Wakeups:
    """Notices commits while the `with` block lasts. Clear, then read, then wait: so nothing is missed."""

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
        """Reset: from here on a commit ends the wait."""
        self._woken.clear()

    async def wait(self, seconds: float) -> None:
        """Wait until something is committed, or the time is up."""
        with suppress(TimeoutError):
            # Not wait_for: before Python 3.12 it swallows a cancellation that arrives together with the event.
            async with asyncio.timeout(max(0.0, seconds)):
                await self._woken.wait()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # that loop has ended: nobody is waiting any more
            self._loop.call_soon_threadsafe(self._woken.set)
