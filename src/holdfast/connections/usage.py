"""Usage: every tool call is counted, gathered in memory and written together, so that counting costs a call nothing."""

from __future__ import annotations

from collections import deque

from holdfast.connections.model import ToolCall
from holdfast.connections.queries import usage
from holdfast.store import Clock, Store, Tx

BUFFER = 10_000
AT_ONCE = 1000


class Usage:
    """Counts calls in memory. A killed process loses what it has not written: these are figures, not records."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._buffer: deque[ToolCall] = deque(maxlen=BUFFER)

    def count(self, connection_id: str | None, tool: str, seconds: float, outcome: str) -> None:
        self._buffer.append(ToolCall(connection_id, tool, self._clock(), int(seconds * 1_000_000), outcome))

    async def flush(self) -> None:
        while self._buffer:
            batch = [self._buffer.popleft() for _ in range(min(AT_ONCE, len(self._buffer)))]

            def write(tx: Tx, batch: list[ToolCall] = batch) -> None:
                for call in batch:
                    usage.add(tx, call)

            await self._store.write(write)
