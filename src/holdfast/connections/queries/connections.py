"""The SQL of connections, functions of a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from holdfast.connections.model import IDLE_AFTER_MS, LEASE_MS, Connection
from holdfast.identity.caller import Caller
from holdfast.store import Tx, leases

COLUMNS = ", ".join(field.name for field in fields(Connection))
OF_C = ", ".join(f"c.{field.name}" for field in fields(Connection))
DAEMONS = leases.Lease("daemons", "id", holder=None, own_row=True)
BY_HANDLE = "connection:"
"""The identity of a caller that proved by token which connection is its own."""

# ruff: noqa: S608 - the only texts put into SQL here are the column names above


def by_id(tx: Tx, connection_id: str) -> Connection | None:
    return _first(tx, f"SELECT {COLUMNS} FROM connections WHERE id = :id", id=connection_id)


def by_identity(tx: Tx, identity: str) -> Connection | None:
    if identity.startswith(BY_HANDLE):
        return by_id(tx, identity.removeprefix(BY_HANDLE))
    return _first(tx, f"SELECT {COLUMNS} FROM connections WHERE identity = :identity", identity=identity)


def newest(tx: Tx, *, ended: bool, before: tuple[int, str] | None, limit: int) -> list[Connection]:
    """Return connections, newest first; with `ended` the ended ones too."""
    at, last = before or (1 << 62, "")
    rows = tx.all(
        f"SELECT {COLUMNS} FROM connections WHERE (created_at < :at OR (created_at = :at AND id < :last))"
        + ("" if ended else " AND state NOT IN ('expired', 'revoked')")
        + " ORDER BY created_at DESC, id DESC LIMIT :limit",
        at=at,
        last=last,
        limit=limit,
    )
    return [Connection(**row) for row in rows]


def connected(tx: Tx, limit: int) -> list[Connection]:
    """Return those whose transport is open, the last heard of first."""
    sql = f"SELECT {COLUMNS} FROM connections WHERE attached_by IS NOT NULL ORDER BY seen_at DESC, id DESC LIMIT :limit"
    return [Connection(**row) for row in tx.all(sql, limit=limit)]


def unconnected(tx: Tx, before: tuple[int, str] | None, limit: int) -> list[Connection]:
    """Return those whose transport is closed, the last heard of first."""
    at, last = before or (1 << 62, "")
    rows = tx.all(
        f"SELECT {COLUMNS} FROM connections WHERE (seen_at, id) < (:at, :last) AND attached_by IS NULL"
        " ORDER BY seen_at DESC, id DESC LIMIT :limit",
        at=at,
        last=last,
        limit=limit,
    )
    return [Connection(**row) for row in rows]


def create(tx: Tx, caller: Caller, attached_by: str | None, connection_id: str) -> Connection:
    known = caller.identity is not None and not caller.identity.startswith(BY_HANDLE)
    row = tx.one(
        "INSERT INTO connections (id, identity, transport, era, client_name, client_version, agent_session, principal,"
        " root_uri, attached_by, pid, created_at, seen_at, state) VALUES (:id, :identity, :transport, :era,"
        " :client_name, :client_version, :agent_session, :principal, :root, :attached_by, :pid, :now, :now, 'active')"
        f" RETURNING {COLUMNS}",
        id=connection_id,
        identity=caller.identity if known else None,
        transport=caller.transport.value,
        era=caller.era.value,
        client_name=caller.client_name,
        client_version=caller.client_version,
        agent_session=caller.agent_session,
        principal=caller.principal,
        root=caller.root.uri if caller.root else None,
        attached_by=attached_by,
        pid=caller.pid,
        now=tx.now(),
    )
    if row is None:
        raise RuntimeError("INSERT … RETURNING gave no row")
    return Connection(**row)


def touch(tx: Tx, connection_id: str, caller: Caller, attached_by: str | None) -> None:
    """Note that the caller just made a call."""
    tx.run(
        "UPDATE connections SET seen_at = :now, attached_by = :attached_by, pid = :pid, state = 'active',"
        " transport = :transport, era = :era, root_uri = coalesce(:root, root_uri) WHERE id = :id",
        now=tx.now(),
        attached_by=attached_by,
        pid=caller.pid,
        transport=caller.transport.value,
        era=caller.era.value,
        root=caller.root.uri if caller.root else None,
        id=connection_id,
    )


def move_identity(tx: Tx, connection_id: str, identity: str, agent_session: str | None) -> None:
    """Give an identity to this connection and take it from any other."""
    tx.run(
        "UPDATE connections SET identity = NULL, state = 'detached', attached_by = NULL"
        " WHERE identity = :identity AND id <> :id",
        identity=identity,
        id=connection_id,
    )
    sql = "UPDATE connections SET identity = :identity, agent_session = coalesce(:agent, agent_session) WHERE id = :id"
    tx.run(sql, identity=identity, agent=agent_session, id=connection_id)


def count_reconnect(tx: Tx, connection_id: str) -> int:
    """Count a reconnect; returns how many there were."""
    row = tx.one(
        "UPDATE connections SET reconnect_count = reconnect_count + 1, seen_at = :now, state = 'active'"
        " WHERE id = :id RETURNING reconnect_count",
        now=tx.now(),
        id=connection_id,
    )
    return int(row["reconnect_count"]) if row else 0


def revoke(tx: Tx, connection_id: str) -> None:
    """End a connection for good: its caller will be a new one."""
    sql = "UPDATE connections SET state = 'revoked', attached_by = NULL, identity = NULL WHERE id = :id"
    tx.run(sql, id=connection_id)


def set_session(tx: Tx, connection_id: str, session_id: str | None, joined: bool) -> None:
    sql = "UPDATE connections SET reasoning_session = :session, joined = :joined, session_since = :now WHERE id = :id"
    tx.run(sql, session=session_id, joined=int(joined), now=tx.now(), id=connection_id)


def set_root(tx: Tx, connection_id: str, uri: str) -> None:
    tx.run("UPDATE connections SET bound_root = :uri WHERE id = :id", uri=uri, id=connection_id)


def attach(tx: Tx, identity: str, daemon: str, pid: int) -> None:
    """Note that a known caller's transport is open again."""
    sql = (
        "UPDATE connections SET attached_by = :daemon, pid = :pid,"
        " state = CASE WHEN state = 'detached' THEN 'idle' ELSE state END WHERE identity = :identity"
    )
    tx.run(sql, daemon=daemon, pid=pid, identity=identity)


def detach(tx: Tx, identity: str, daemon: str) -> None:
    """Note that the caller's transport is closed."""
    tx.run(
        "UPDATE connections SET attached_by = NULL,"
        " state = CASE WHEN state IN ('active', 'idle') THEN 'detached' ELSE state END"
        " WHERE identity = :identity AND (attached_by = :daemon OR attached_by IS NULL)",
        identity=identity,
        daemon=daemon,
    )


def attached(tx: Tx, daemon: str) -> list[tuple[str, int | None]]:
    """Return the identities attached to this daemon, each with its relay's process."""
    rows = tx.all(
        "SELECT identity, pid FROM connections WHERE attached_by = :daemon AND identity IS NOT NULL", daemon=daemon
    )
    return [(row["identity"], row["pid"]) for row in rows]


def let_go(tx: Tx) -> None:
    """Detach callers without a relay at an orderly stop; they can come back."""
    tx.run("UPDATE connections SET state = 'detached' WHERE state IN ('active', 'idle') AND attached_by IS NULL")


def rest(tx: Tx) -> int:
    """Mark connections without recent calls as idle, and detach those of a dead daemon."""
    sql = "UPDATE connections SET state = 'idle' WHERE state = 'active' AND seen_at < :before"
    idle = tx.run(sql, before=tx.now() - IDLE_AFTER_MS)
    return idle + tx.run(
        "UPDATE connections SET state = 'detached', attached_by = NULL WHERE state IN ('active', 'idle')"
        " AND attached_by IS NOT NULL"
        f" AND attached_by NOT IN (SELECT d.id FROM daemons d WHERE {DAEMONS.in_force('d')})",
        now=tx.now(),
    )


def expire(tx: Tx, life_ms: int, limit: int) -> list[str]:
    """Expire some of the connections whose callers did not come back within their lifetime."""
    rows = tx.all(
        "SELECT id FROM connections WHERE state IN ('active', 'idle', 'detached') AND attached_by IS NULL"
        " AND seen_at < :before ORDER BY seen_at LIMIT :limit",
        before=tx.now() - life_ms,
        limit=limit,
    )
    for row in rows:
        tx.run("UPDATE connections SET state = 'expired', attached_by = NULL WHERE id = :id", id=row["id"])
    return [row["id"] for row in rows]


def forget_ended(tx: Tx, keep_ms: int) -> int:
    """Drop unrecognised callers' connections that ended long ago; one with an identity may be recognised again."""
    sql = "DELETE FROM connections WHERE state IN ('expired', 'revoked') AND identity IS NULL AND seen_at < :before"
    return tx.run(sql, before=tx.now() - keep_ms)


def renew_lease(tx: Tx, daemon: str) -> None:
    """Renew the lease by which this daemon's callers count as live."""
    leases.take(tx, DAEMONS, daemon, daemon, LEASE_MS)


def live_holders(tx: Tx, session_ids: Sequence[str], but: str | None) -> list[Connection]:
    """Return, for each of these sessions, the live caller other than `but` that is in it, if any."""
    holders: list[Connection] = []
    for session_id in session_ids:
        holder = _first(
            tx,
            f"SELECT {OF_C} FROM connections c JOIN daemons d ON d.id = c.attached_by"
            f" WHERE c.reasoning_session = :session AND c.id <> :but AND {DAEMONS.in_force('d')}"
            " ORDER BY c.seen_at DESC LIMIT 1",
            session=session_id,
            but=but or "",
            now=tx.now(),
        )
        if holder is not None:
            holders.append(holder)
    return holders


def is_connected(tx: Tx, identity: str) -> bool:
    """Return whether a caller's transport is open at a live daemon."""
    sql = (
        "SELECT 1 AS known FROM connections c JOIN daemons d ON d.id = c.attached_by"
        f" WHERE c.identity = :identity AND {DAEMONS.in_force('d')}"
    )
    return tx.one(sql, identity=identity, now=tx.now()) is not None


def connected_agents(tx: Tx) -> set[str]:
    """Return the agent sessions whose transport is open at a live daemon."""
    rows = tx.all(
        "SELECT c.identity FROM connections c JOIN daemons d ON d.id = c.attached_by"
        f" WHERE {DAEMONS.in_force('d')} AND c.identity LIKE 'agent:%'",
        now=tx.now(),
    )
    return {str(row["identity"]).removeprefix("agent:") for row in rows}


def is_held(tx: Tx, session_id: str, but: str) -> bool:
    """Return whether a live caller was given this session after `but`; those that joined by name do not count."""
    # In two steps, because every thought asks this and nearly always nobody else was in the session.
    sql = (
        "SELECT attached_by FROM connections WHERE reasoning_session = :session AND joined = 0 AND id <> :but AND"
        " coalesce(session_since, 0) >= (SELECT coalesce(session_since, 0) FROM connections WHERE id = :but)"
    )
    others = tx.all(sql, session=session_id, but=but)
    attached = {row["attached_by"] for row in others} - {None}
    return any(
        tx.one(f"SELECT d.id FROM daemons d WHERE d.id = :id AND {DAEMONS.in_force('d')}", id=daemon, now=tx.now())
        for daemon in attached
    )


def _first(tx: Tx, sql: str, **params: Any) -> Connection | None:
    row = tx.one(sql, **params)
    return Connection(**row) if row else None
