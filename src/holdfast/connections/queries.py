"""The SQL of connections, functions of a transaction."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.caller import Caller
from holdfast.connections.model import LEASE_MS, Connection
from holdfast.store import Row, Tx

COLUMNS = (
    "id, identity, transport, era, client_name, client_version, agent_session, bound_root, reasoning_session,"
    " joined, attached_by, pid, created_at, seen_at"
)


def by_identity(tx: Tx, identity: str) -> Connection | None:
    """The connection of a recognised caller."""
    row = tx.one(f"SELECT {COLUMNS} FROM connections WHERE identity = :identity", identity=identity)  # noqa: S608
    return _connection(row) if row else None


def create(tx: Tx, caller: Caller, attached_by: str | None) -> Connection:
    """A new connection for this caller."""
    row = tx.one(
        "INSERT INTO connections (id, identity, transport, era, client_name, client_version, agent_session,"  # noqa: S608
        " attached_by, pid, created_at, seen_at) VALUES (:id, :identity, :transport, :era, :client_name,"
        f" :client_version, :agent_session, :attached_by, :pid, :now, :now) RETURNING {COLUMNS}",
        id=tx.new_id(),
        identity=caller.identity,
        transport=caller.transport.value,
        era=caller.era.value,
        client_name=caller.client_name,
        client_version=caller.client_version,
        agent_session=caller.agent_session,
        attached_by=attached_by,
        pid=caller.pid,
        now=tx.now(),
    )
    if row is None:
        raise RuntimeError("INSERT … RETURNING gave no row")
    return _connection(row)


def touch(tx: Tx, connection_id: str, attached_by: str | None, pid: int | None) -> None:
    """The caller was heard of just now."""
    tx.run(
        "UPDATE connections SET seen_at = :now, attached_by = :attached_by, pid = :pid WHERE id = :id",
        now=tx.now(),
        attached_by=attached_by,
        pid=pid,
        id=connection_id,
    )


def set_session(tx: Tx, connection_id: str, session_id: str | None, joined: bool) -> None:
    """What this caller reasons in from now on."""
    tx.run(
        "UPDATE connections SET reasoning_session = :session, joined = :joined WHERE id = :id",
        session=session_id,
        joined=int(joined),
        id=connection_id,
    )


def set_root(tx: Tx, connection_id: str, uri: str) -> None:
    """The root this caller is bound to from now on."""
    tx.run("UPDATE connections SET bound_root = :uri WHERE id = :id", uri=uri, id=connection_id)


def attach(tx: Tx, identity: str, daemon: str, pid: int) -> None:
    """A known caller's transport is open again."""
    tx.run(
        "UPDATE connections SET attached_by = :daemon, pid = :pid WHERE identity = :identity",
        daemon=daemon,
        pid=pid,
        identity=identity,
    )


def detach(tx: Tx, identity: str, daemon: str) -> None:
    """The caller's transport is gone."""
    tx.run(
        "UPDATE connections SET attached_by = NULL WHERE identity = :identity AND attached_by = :daemon",
        identity=identity,
        daemon=daemon,
    )


def attached(tx: Tx, daemon: str) -> list[tuple[str, int | None]]:
    """The identities this daemon has attached, each with its relay's process."""
    rows = tx.all(
        "SELECT identity, pid FROM connections WHERE attached_by = :daemon AND identity IS NOT NULL", daemon=daemon
    )
    return [(row["identity"], row["pid"]) for row in rows]


def renew_lease(tx: Tx, daemon: str) -> None:
    """This daemon lives and vouches for its callers."""
    tx.run(
        "INSERT INTO daemons (id, lease_until) VALUES (:id, :until)"
        " ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until",
        id=daemon,
        until=tx.now() + LEASE_MS,
    )


def live_holders(tx: Tx, session_ids: Sequence[str], but: str | None) -> dict[str, Connection]:
    """Of these sessions, the ones that a live caller other than `but` reasons in, with that caller."""
    holders: dict[str, Connection] = {}
    for session_id in session_ids:
        row = tx.one(
            f"SELECT {', '.join('c.' + name.strip() for name in COLUMNS.split(','))}"  # noqa: S608
            " FROM connections c JOIN daemons d ON d.id = c.attached_by"
            " WHERE c.reasoning_session = :session AND c.id <> :but AND d.lease_until > :now"
            " ORDER BY c.seen_at DESC LIMIT 1",
            session=session_id,
            but=but or "",
            now=tx.now(),
        )
        if row:
            holders[session_id] = _connection(row)
    return holders


def _connection(row: Row) -> Connection:
    return Connection(**row)
