"""SQL of the latest sessions of all projects, and of what agents got back."""
# ruff: noqa: S608 - the SQL is built from constants only

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from holdfast.briefing.ledger.model import Ledger
from holdfast.briefing.queries import agent_sessions
from holdfast.briefing.queries.agent_sessions import AgentSession
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx

KEPT = 1_000
"""Rows whose objects are kept."""


@dataclass(frozen=True, slots=True)
class RecentLedger:
    """Where a ledger belongs, without its content."""

    session_id: str
    root: str
    project_key: str | None
    last_at: int
    updated_at: int
    settled_at: int | None


@dataclass(frozen=True, slots=True)
class Recovery:
    """A session that got something back, or was killed and goes on."""

    row_id: int
    root: str
    session_id: str
    recovered: str | None
    """The session whose work it was."""
    occasion: str
    kinds: tuple[str, ...]
    at: int
    broke_at: int | None = None
    """When it was killed, if it is the same session that goes on."""


def ledgers(tx: Tx, since: int, limit: int) -> list[RecentLedger]:
    """Return the ledgers that have grown since a time, the latest first."""
    rows = tx.all(
        "SELECT session_id, root, project_key, last_at, updated_at, settled_at FROM ledgers"
        " WHERE last_at >= :since ORDER BY last_at DESC LIMIT :limit",
        since=since,
        limit=limit,
    )
    return [_known_ledger(**row) for row in rows]


def content(tx: Tx, session_id: str) -> Ledger | None:
    """Return a ledger."""
    row = tx.one("SELECT content FROM ledgers WHERE session_id = :id", id=session_id)
    return None if row is None else Ledger.from_json(row["content"])


def seen(tx: Tx, since: int, limit: int) -> list[AgentSession]:
    """Return the sessions that a hook reported since a time, the latest first."""
    rows = tx.all(
        f"SELECT {agent_sessions.COLUMNS} FROM agent_sessions WHERE seen_at >= :since ORDER BY seen_at DESC"
        " LIMIT :limit",
        since=since,
        limit=limit,
    )
    return [_known_session(**row) for row in rows]


def recoveries(tx: Tx, since: int, limit: int) -> list[Recovery]:
    """Return what agents got back since a time, the latest first."""
    rows = tx.all(
        "SELECT row_id, root, session_id, recovered, occasion, what, at,"
        " CASE WHEN occasion = 'resume' THEN content END AS content FROM recoveries WHERE at >= :since"
        " ORDER BY at DESC LIMIT :limit",
        since=since,
        limit=limit,
    )
    return [_recovery(broke_at=_broke_at(row.pop("content")), **row) for row in rows]


def _broke_at(content: str | None) -> int | None:
    return None if content is None else int(json.loads(content)["knew"]["last_at"])


# Most rows are those of the last page, and an object takes longer to make than its row to read.
_known_ledger = lru_cache(KEPT)(RecentLedger)
_known_session = lru_cache(KEPT)(AgentSession)


@lru_cache(KEPT)
def _recovery(what: str, **row: Any) -> Recovery:
    return Recovery(kinds=tuple(json.loads(what)), **row)
