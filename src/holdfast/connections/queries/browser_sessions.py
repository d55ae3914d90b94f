"""The SQL of browsers that signed in. Functions of a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.connections.model import Attempt
from holdfast.store import Tx

if TYPE_CHECKING:
    from holdfast.connections.results import BrowserSession

_COLUMNS = "s.id, s.key_name, s.scope, s.client, s.address, s.created_at, s.seen_at, s.expires_at, s.ended_at"
_KEY_IN_FORCE = (
    "(s.key_name = :owner OR EXISTS"
    " (SELECT 1 FROM api_keys k WHERE k.name = s.key_name AND k.scope = s.scope AND k.revoked_at IS NULL))"
)
"""A session ends with the key that it was begun with."""


def begin(tx: Tx, digest: str, key_name: str, scope: str, attempt: Attempt, life_ms: int) -> str:
    """Store a session by the hash of its secret; returns its id."""
    session_id = tx.new_id()
    tx.run(
        "INSERT INTO browser_sessions"
        " (id, hash, key_name, scope, client, address, created_at, seen_at, expires_at)"
        " VALUES (:id, :hash, :key, :scope, :client, :address, :now, :now, :end)",
        id=session_id,
        hash=digest,
        key=key_name,
        scope=scope,
        client=attempt.client,
        address=attempt.address[:200],
        now=tx.now(),
        end=tx.now() + life_ms,
    )
    tx.emit("browser.signed_in", session_id, {"scope": scope})
    return session_id


def find(tx: Tx, digest: str, owner: str, idle_ms: int) -> BrowserSession | None:
    """Return the session with this hash if it is still in force."""
    from holdfast.connections.results import BrowserSession

    row = tx.one(
        f"SELECT {_COLUMNS} FROM browser_sessions s"  # noqa: S608 - of constants
        " WHERE s.hash = :hash AND s.ended_at IS NULL AND s.expires_at > :now AND s.seen_at > :idle"
        f" AND {_KEY_IN_FORCE}",
        hash=digest,
        now=tx.now(),
        idle=tx.now() - idle_ms,
        owner=owner,
    )
    return None if row is None else BrowserSession(**row)


def in_force(tx: Tx, owner: str, idle_ms: int) -> list[BrowserSession]:
    """Return every session that still opens the dashboard, the last used first."""
    from holdfast.connections.results import BrowserSession

    rows = tx.all(
        f"SELECT {_COLUMNS} FROM browser_sessions s"  # noqa: S608 - of constants
        f" WHERE s.ended_at IS NULL AND s.expires_at > :now AND s.seen_at > :idle AND {_KEY_IN_FORCE}"
        " ORDER BY s.seen_at DESC, s.id",
        now=tx.now(),
        idle=tx.now() - idle_ms,
        owner=owner,
    )
    return [BrowserSession(**row) for row in rows]


def touch(tx: Tx, session_id: str) -> None:
    """Note that a session was used."""
    tx.run("UPDATE browser_sessions SET seen_at = :now WHERE id = :id", now=tx.now(), id=session_id)


def end(tx: Tx, session_id: str, by: str) -> bool:
    """End a session; False if there is none, or it had ended."""
    sql = "UPDATE browser_sessions SET ended_at = :now, ended_by = :by WHERE id = :id AND ended_at IS NULL"
    if not tx.run(sql, now=tx.now(), by=by, id=session_id):
        return False
    tx.emit("browser.ended", session_id, {"by": by})
    return True


def forget_old(tx: Tx, keep_ms: int) -> int:
    """Delete sessions that ended, by themselves or by hand, that long ago."""
    sql = "DELETE FROM browser_sessions WHERE expires_at < :before OR ended_at < :before"
    return tx.run(sql, before=tx.now() - keep_ms)
