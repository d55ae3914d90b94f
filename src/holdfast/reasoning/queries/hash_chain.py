"""The SQL of checks: what is stored of chains and of the register, functions of a transaction."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.reasoning.model import Thought
from holdfast.reasoning.queries.sessions import WHOLE, to_thought
from holdfast.store import Tx, register

THOUGHTS_AT_ONCE = 50


def counted(tx: Tx) -> tuple[int, int] | None:
    """Return how many sessions were ever registered, and the sum of their head hashes."""
    row = tx.one("SELECT sessions, heads_sum FROM event_head WHERE id = 1")
    return None if row is None else (row["sessions"], row["heads_sum"])


def registered(tx: Tx) -> int:
    row = tx.one("SELECT count(*) AS n FROM session_register")
    return int(row["n"]) if row else 0


def missing_sessions(tx: Tx) -> list[tuple[str, bool]]:
    """Return the registered sessions that do not exist, and whether a salvage is known to have lost them."""
    rows = tx.all(
        "SELECT r.id, r.gone FROM session_register r LEFT JOIN sessions s ON s.id = r.id"
        " WHERE s.id IS NULL AND (r.gone IS NULL OR r.gone = :lost) ORDER BY r.id",
        lost=register.LOST,
    )
    return [(row["id"], bool(row["gone"])) for row in rows]


def unregistered_sessions(tx: Tx) -> list[str]:
    rows = tx.all(
        "SELECT s.id FROM sessions s LEFT JOIN session_register r ON r.id = s.id"
        " WHERE r.id IS NULL OR r.gone IS NOT NULL ORDER BY s.id"
    )
    return [row["id"] for row in rows]


def heads_total(tx: Tx) -> int:
    """Return the sum of the head hashes of all sessions, also of removed ones."""
    rows = tx.all(
        "SELECT head_hash AS head FROM sessions"
        " UNION ALL SELECT hash AS head FROM session_register WHERE gone IS NOT NULL"
    )
    return register.total(row["head"] for row in rows)


def thoughts(tx: Tx, session_id: str) -> Iterator[tuple[Thought, str, str]]:
    """Yield a session's thoughts, each with the hash before it and its own, read a few at a time."""
    after = 0
    while rows := tx.all(
        f"SELECT {WHOLE}, prev_hash, hash FROM thoughts"  # noqa: S608
        " WHERE session_id = :id AND number > :after ORDER BY number LIMIT :limit",
        id=session_id,
        after=after,
        limit=THOUGHTS_AT_ONCE,
    ):
        after = rows[-1]["number"]
        for row in rows:
            prev_hash, own_hash = row.pop("prev_hash"), row.pop("hash")
            yield to_thought(row), prev_hash, own_hash
