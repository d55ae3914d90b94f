"""Audit: who tried to reconnect to which connection, and the outcome; never the token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.connections.model import Attempt
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx

if TYPE_CHECKING:
    from holdfast.connections.results import AuditLine

KEEP_MS = 90 * 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Entry:
    action: str
    outcome: str
    connection_id: str | None
    attempt: Attempt
    times: int = 1
    """How often, where attempts beyond the limit were counted together."""


def write(tx: Tx, entry: Entry) -> None:
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
    """Return the audit lines of one connection or of all, newest first."""
    from holdfast.connections.results import AuditLine

    where = "" if connection_id is None else " AND connection_id = :connection"
    sql = (
        "SELECT row_id, at, action, outcome, connection_id, address, client, principal, times FROM audit"  # noqa: S608
        f" WHERE row_id < :before{where} ORDER BY row_id DESC LIMIT :limit"
    )
    rows = tx.all(sql, before=before or 1 << 62, connection=connection_id, limit=limit)
    return [AuditLine(**row) for row in rows]


def forget_old(tx: Tx) -> int:
    return tx.run("DELETE FROM audit WHERE at < :before", before=tx.now() - KEEP_MS)
