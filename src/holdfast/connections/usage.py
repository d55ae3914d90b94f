"""Usage: every tool call is counted, gathered in memory and written together, so that counting costs a call nothing."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from holdfast.store import Clock, Row, Store, Tx

BUFFER = 10_000
AT_ONCE = 1000
KEEP_MS = 30 * 24 * 3_600_000


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
                    tx.run(
                        "INSERT INTO requests (connection_id, tool, at, duration_us, outcome)"
                        " VALUES (:connection, :tool, :at, :duration, :outcome)",
                        connection=request.connection_id,
                        tool=request.tool,
                        at=request.at,
                        duration=request.duration_us,
                        outcome=request.outcome,
                    )

            await self._store.write(write)


def of_connection(tx: Tx, connection_id: str, before: int | None, limit: int) -> list[Row]:
    """A connection's calls, the newest first."""
    return tx.all(
        "SELECT row_id, tool, at, duration_us, outcome FROM requests"
        " WHERE connection_id = :id AND row_id < :before ORDER BY row_id DESC LIMIT :limit",
        id=connection_id,
        before=before or 1 << 62,
        limit=limit,
    )


def by_tool(tx: Tx, since: int) -> list[dict[str, Any]]:
    """Calls, errors and mean duration per tool."""
    return tx.all(
        "SELECT tool, count(*) AS calls, sum(CASE WHEN outcome = 'ok' THEN 0 ELSE 1 END) AS errors,"
        " sum(duration_us) / count(*) AS mean_us, max(duration_us) AS max_us"
        " FROM requests WHERE at >= :since GROUP BY tool ORDER BY count(*) DESC, tool",
        since=since,
    )


def forget_old(tx: Tx) -> int:
    """Drop figures past keeping."""
    return tx.run("DELETE FROM requests WHERE at < :before", before=tx.now() - KEEP_MS)
