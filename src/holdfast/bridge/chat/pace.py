"""The pace of a chat: one text at a time, within the service's limits, and observing the pauses it asks for."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from holdfast.bridge.chat import Limit


class Pace:
    """Remembers when texts were sent, per limit, and which chats asked for a pause."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._sent: dict[Limit, deque[float]] = {}
        self._resting: dict[str, float] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    @asynccontextmanager
    async def turn(self, place: str, limits: Sequence[Limit]) -> AsyncIterator[None]:
        """Wait until a text may be sent within all limits, and keep others out while it is sent."""
        async with self._locks.setdefault(place, asyncio.Lock()):
            while (wait := self.wait(place, limits)) > 0:
                await self._sleep(wait)
            self.count(limits)
            yield

    def wait(self, place: str, limits: Sequence[Limit]) -> float:
        now = self._clock()
        rest = self._resting.get(place, now) - now
        return max([0.0, rest, *(self._until_free(limit, now) for limit in limits)])

    def count(self, limits: Sequence[Limit]) -> None:
        now = self._clock()
        for limit in limits:
            self._sent.setdefault(limit, deque(maxlen=limit.count)).append(now)

    def rest(self, place: str, seconds: float) -> None:
        self._resting[place] = max(self._resting.get(place, 0.0), self._clock() + seconds)

    def _until_free(self, limit: Limit, now: float) -> float:
        sent = self._sent.get(limit)
        if sent is None or len(sent) < limit.count:
            return 0.0
        return sent[0] + limit.seconds - now
