"""The SQL of usage figures, functions of a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.connections.model import ToolCall
from holdfast.store import Tx

if TYPE_CHECKING:
    from holdfast.connections.results import ToolFigures, ToolLatency

KEEP_MS = 30 * 24 * 3_600_000


def add(tx: Tx, call: ToolCall) -> None:
    sql = (
        "INSERT INTO requests (connection_id, tool, at, duration_us, outcome)"
        " VALUES (:connection_id, :tool, :at, :duration_us, :outcome)"
    )
    tx.run(sql, **vars(call))


def of_connection(tx: Tx, connection_id: str, before: int | None, limit: int) -> list[ToolCall]:
    sql = (
        "SELECT row_id, connection_id, tool, at, duration_us, outcome FROM requests"
        " WHERE connection_id = :id AND row_id < :before ORDER BY row_id DESC LIMIT :limit"
    )
    return [ToolCall(**row) for row in tx.all(sql, id=connection_id, before=before or 1 << 62, limit=limit)]


def by_tool(tx: Tx, since: int) -> list[ToolFigures]:
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


def latencies(tx: Tx, newest: int) -> list[ToolLatency]:
    """Return how long each tool took, over the newest calls of all: as much work however many there were."""
    from holdfast.connections.results import ToolLatency

    rows = tx.all(
        "WITH newest AS (SELECT tool, at, duration_us, outcome FROM requests ORDER BY row_id DESC LIMIT :newest),"
        " ranked AS (SELECT tool, at, duration_us, outcome,"
        " row_number() OVER (PARTITION BY tool ORDER BY duration_us) AS place,"
        " count(*) OVER (PARTITION BY tool) AS calls FROM newest)"
        " SELECT tool, max(calls) AS calls, sum(CASE WHEN outcome = 'ok' THEN 0 ELSE 1 END) AS errors,"
        " max(CASE WHEN place = (calls * 50 + 99) / 100 THEN duration_us END) AS p50_us,"
        " max(CASE WHEN place = (calls * 95 + 99) / 100 THEN duration_us END) AS p95_us,"
        " max(duration_us) AS max_us, max(at) AS last_at"
        " FROM ranked GROUP BY tool ORDER BY max(calls) DESC, tool",
        newest=newest,
    )
    numbers = ("calls", "errors", "p50_us", "p95_us", "max_us", "last_at")
    return [ToolLatency(str(row["tool"]), *(int(row[name]) for name in numbers)) for row in rows]


def active_steps(tx: Tx, since: int, step_ms: int) -> list[tuple[str, int]]:
    """Return the steps of time since then in which each connection called a tool."""
    rows = tx.all(
        "SELECT DISTINCT connection_id, at / :step AS step FROM requests"
        " WHERE at >= :since AND connection_id IS NOT NULL",
        since=since,
        step=step_ms,
    )
    return [(str(row["connection_id"]), int(row["step"])) for row in rows]


def forget_old(tx: Tx) -> int:
    return tx.run("DELETE FROM requests WHERE at < :before", before=tx.now() - KEEP_MS)
