"""The SQL of usage figures, functions of a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.store import Tx

if TYPE_CHECKING:
    from holdfast.connections.results import CountedCall, ToolFigures

KEEP_MS = 30 * 24 * 3_600_000


def add(tx: Tx, connection_id: str | None, tool: str, at: int, duration_us: int, outcome: str) -> None:
    """Store one call."""
    tx.run(
        "INSERT INTO requests (connection_id, tool, at, duration_us, outcome)"
        " VALUES (:connection, :tool, :at, :duration, :outcome)",
        connection=connection_id,
        tool=tool,
        at=at,
        duration=duration_us,
        outcome=outcome,
    )


def of_connection(tx: Tx, connection_id: str, before: int | None, limit: int) -> list[CountedCall]:
    """A connection's calls, the newest first."""
    from holdfast.connections.results import CountedCall

    rows = tx.all(
        "SELECT row_id, tool, at, duration_us, outcome FROM requests"
        " WHERE connection_id = :id AND row_id < :before ORDER BY row_id DESC LIMIT :limit",
        id=connection_id,
        before=before or 1 << 62,
        limit=limit,
    )
    return [CountedCall(**row) for row in rows]


def by_tool(tx: Tx, since: int) -> list[ToolFigures]:
    """Calls, errors and mean duration per tool."""
    from holdfast.connections.results import ToolFigures

    rows = tx.all(
        "SELECT tool, count(*) AS calls, sum(CASE WHEN outcome = 'ok' THEN 0 ELSE 1 END) AS errors,"
        " sum(duration_us) / count(*) AS mean_us, max(duration_us) AS max_us"
        " FROM requests WHERE at >= :since GROUP BY tool ORDER BY count(*) DESC, tool",
        since=since,
    )
    return [  # sums come as decimals from PostgreSQL
        ToolFigures(row["tool"], int(row["calls"]), int(row["errors"]), float(row["mean_us"]), int(row["max_us"]))
        for row in rows
    ]


def forget_old(tx: Tx) -> int:
    """Drop figures past keeping."""
    return tx.run("DELETE FROM requests WHERE at < :before", before=tx.now() - KEEP_MS)
