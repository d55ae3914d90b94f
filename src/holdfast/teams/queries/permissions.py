"""The SQL of permissions, functions of a transaction."""
# ruff: noqa: S608 - the texts are put together from constants alone

from __future__ import annotations

from holdfast.store import Tx
from holdfast.teams.model import PermissionRequest

REQUEST = "id, team, tool, input, allowed, created_at, expires_at"


def add(tx: Tx, ask_id: str, team: str, tool: str, given: str, wait_ms: int) -> str:
    """Store a request that waits for a decision; its id."""
    request_id = tx.new_id()
    tx.run(
        "INSERT INTO permissions (id, ask_id, team, tool, input, created_at, expires_at)"
        " VALUES (:id, :ask, :team, :tool, :input, :now, :expires)",
        id=request_id,
        ask=ask_id,
        team=team,
        tool=tool,
        input=given,
        now=tx.now(),
        expires=tx.now() + wait_ms,
    )
    tx.emit("teams.permission_requested", request_id, {"team": team, "tool": tool})
    return request_id


def is_over(tx: Tx, ask_id: str) -> bool:
    """Return whether an ask is no longer being worked on."""
    row = tx.one("SELECT status FROM asks WHERE id = :id", id=ask_id)
    return row is not None and row["status"] != "running"


def request(tx: Tx, request_id: str) -> PermissionRequest | None:
    """The request with this id."""
    row = tx.one(f"SELECT {REQUEST} FROM permissions WHERE id = :id", id=request_id)
    return None if row is None else PermissionRequest(**row)


def decide(tx: Tx, request_id: str, allowed: bool) -> None:
    """Store the owner's decision."""
    tx.run(
        "UPDATE permissions SET allowed = :allowed, decided_at = :now WHERE id = :id",
        allowed=int(allowed),
        now=tx.now(),
        id=request_id,
    )
    tx.emit("teams.permission_decided", request_id, {"allowed": allowed})


def undecided(tx: Tx) -> list[PermissionRequest]:
    """Requests that wait for a decision, the oldest first."""
    rows = tx.all(
        f"SELECT {REQUEST} FROM permissions WHERE allowed IS NULL AND expires_at > :now ORDER BY row_id", now=tx.now()
    )
    return [PermissionRequest(**row) for row in rows]


def waiting_of(tx: Tx, ask_id: str) -> PermissionRequest | None:
    """The request that an ask's agent waits for."""
    row = tx.one(
        f"SELECT {REQUEST} FROM permissions WHERE ask_id = :ask AND allowed IS NULL AND expires_at > :now"
        " ORDER BY row_id LIMIT 1",
        ask=ask_id,
        now=tx.now(),
    )
    return None if row is None else PermissionRequest(**row)


def end(tx: Tx, ask_id: str) -> None:
    """End the open requests of an ask's agent, whose turn is over."""
    tx.run(
        "UPDATE permissions SET expires_at = :now WHERE ask_id = :ask AND allowed IS NULL AND expires_at > :now",
        now=tx.now(),
        ask=ask_id,
    )
