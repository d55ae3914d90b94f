"""SQL of the sessions of one project, a page at a time."""
# ruff: noqa: S608 - the SQL is built from constants only

from __future__ import annotations

from holdfast.briefing.ledger.model import Ledger
from holdfast.briefing.queries import agent_sessions
from holdfast.briefing.queries.agent_sessions import AgentSession
from holdfast.briefing.unfinished import Settled
from holdfast.identity.project import Root
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session with its ledger."""

    ledger: Ledger
    root: str
    machine: str
    last_at: int
    settled: Settled | None
    """Why nothing of it is open any more."""
    seen: AgentSession | None


def page(tx: Tx, root: Root, before: int | None, limit: int) -> list[StoredSession]:
    """Return the sessions of a project that were at work before a time, the latest first."""
    times: dict[str, int] = {}
    earlier = "" if before is None else " AND last_at < :before"
    for column, value in (("root", root.uri), ("project_key", root.key)):
        if value is not None:
            rows = tx.all(
                f"SELECT session_id, last_at FROM ledgers WHERE {column} = :value{earlier}"
                " ORDER BY last_at DESC LIMIT :limit",
                value=value,
                limit=limit,
                **({} if before is None else {"before": before}),
            )
            times |= {str(row["session_id"]): int(row["last_at"]) for row in rows}
    found = (of(tx, one) for one in sorted(times, key=lambda one: (-times[one], one))[:limit])
    return [one for one in found if one is not None]


def of(tx: Tx, session_id: str) -> StoredSession | None:
    """Return a session by its id; None if it has no ledger."""
    sql = "SELECT content, root, machine, last_at, settled, settled_at FROM ledgers WHERE session_id = :id"
    row = tx.one(sql, id=session_id)
    if row is None:
        return None
    settled = Settled(row["settled"]) if row["settled_at"] is not None else None
    seen = agent_sessions.of(tx, session_id)
    ledger = Ledger.from_json(row["content"])
    return StoredSession(ledger, str(row["root"]), str(row["machine"]), int(row["last_at"]), settled, seen)
