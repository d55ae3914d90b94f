"""Usage: every tool call is counted, gathered in memory and written together, so that counting costs a call nothing."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from holdfast.connections.queries import usage
from holdfast.store import Clock, Store, Tx

BUFFER = 10_000
AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Request:
    """One tool call."""

    connection_id: str | None
    tool: str
    at: int
    duration_us: int
    outcome: str


class Usage:
    """Counts calls. What a killed process had not written yet is lost: these are figures, not records."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._buffer: deque[Request] = deque(maxlen=BUFFER)

    def count(self, connection_id: str | None, tool: str, seconds: float, outcome: str) -> None:
        """Note a call."""
        self._buffer.append(Request(connection_id, tool, self._clock(), int(seconds * 1_000_000), outcome))

    async def flush(self) -> None:
        """Write what was counted."""
        while self._buffer:
            batch = [self._buffer.popleft() for _ in range(min(AT_ONCE, len(self._buffer)))]

            def write(tx: Tx, batch: list[Request] = batch) -> None:
                for request in batch:
                    usage.add(tx, request.connection_id, request.tool, request.at, request.duration_us, request.outcome)

            await self._store.write(write)
