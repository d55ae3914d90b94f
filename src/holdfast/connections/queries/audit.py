"""Audit: who tried to take up which connection, and how that ended; never the token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.connections.model import Attempt
from holdfast.store import Tx

if TYPE_CHECKING:
    from holdfast.connections.results import AuditLine

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


def read(tx: Tx, connection_id: str | None, before: int | None, limit: int) -> list[AuditLine]:
    """Lines, the newest first, of one connection or of all."""
    from holdfast.connections.results import AuditLine

    where = "" if connection_id is None else " AND connection_id = :connection"
    rows = tx.all(
        "SELECT row_id, at, action, outcome, connection_id, address, client, principal, times FROM audit"  # noqa: S608
        f" WHERE row_id < :before{where} ORDER BY row_id DESC LIMIT :limit",
        before=before or 1 << 62,
        limit=limit,
        **({} if connection_id is None else {"connection": connection_id}),
    )
    return [
        AuditLine(
            row["row_id"],
            row["at"],
            Entry(
                row["action"],
                row["outcome"],
                row["connection_id"],
                Attempt(row["address"], row["client"], row["principal"]),
                row["times"],
            ),
        )
        for row in rows
    ]


def forget_old(tx: Tx) -> int:
    """Drop lines past keeping."""
    return tx.run("DELETE FROM audit WHERE at < :before", before=tx.now() - KEEP_MS)
