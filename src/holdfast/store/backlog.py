"""Limit on the calls that may wait for the store before it reports that it is busy."""

from __future__ import annotations

import threading

from holdfast.errors import Busy, StoreError

QUEUE_LIMIT = 10_000


class Backlog:
    """Counts the calls that are waiting or running; refuses more than its limit, and all of them once closed."""

    def __init__(self, limit: int = QUEUE_LIMIT) -> None:
        self._limit = limit
        self._count = 0
        self._closed = False
        self._changing = threading.Lock()

    def enter(self) -> None:
        """Take a slot; raises StoreError when the store is closed or too busy."""
        with self._changing:
            if self._closed:
                raise StoreError("The store is closed.")
            if self._count >= self._limit:
                raise Busy(
                    f"{self._limit} calls are already waiting for the store.",
                    recovery="Repeat the call in a moment.",
                )
            self._count += 1

    def leave(self, places: int = 1) -> None:
        """Release slots."""
        with self._changing:
            self._count -= places

    def close(self) -> bool:
        """Refuse further calls; returns whether it was open."""
        with self._changing:
            was_open = not self._closed
            self._closed = True
            return was_open
