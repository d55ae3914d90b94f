"""Audit: who tried to take up which connection, and how that ended; never the token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.connections.model import Attempt
from holdfast.store import Row, Tx

KEEP_MS = 90 * 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the audit."""

    action: str
    outcome: str
    connection_id: str | None
    attempt: Attempt
    times: int = 1
    """How often, where attempts beyond the limit were counted together."""


def write(tx: Tx, entry: Entry) -> None:
    """Add a line."""
    tx.run(
        "INSERT INTO audit (at, action, outcome, connection_id, address, client, principal, times)"
        " VALUES (:at, :action, :outcome, :connection, :address, :client, :principal, :times)",
        at=tx.now(),
        action=entry.action,
        outcome=entry.outcome,
        connection=entry.connection_id,
        address=entry.attempt.address[:200],
        client=entry.attempt.client,
        principal=entry.attempt.principal,
        times=entry.times,
    )
    tx.emit("audit.recorded", entry.connection_id or "", {"action": entry.action, "outcome": entry.outcome})


def read(tx: Tx, connection_id: str | None, before: int | None, limit: int) -> list[Row]:
    """Lines, the newest first."""
    where, params = "row_id < :before", {"before": before or 1 << 62, "limit": limit}
    bound: dict[str, Any] = dict(params)
    if connection_id is not None:
        where += " AND connection_id = :connection"
        bound["connection"] = connection_id
    return tx.all(
        "SELECT row_id, at, action, outcome, connection_id, address, client, principal, times FROM audit"  # noqa: S608
        f" WHERE {where} ORDER BY row_id DESC LIMIT :limit",
        **bound,
    )


def forget_old(tx: Tx) -> int:
    """Drop lines past keeping."""
    return tx.run("DELETE FROM audit WHERE at < :before", before=tx.now() - KEEP_MS)
