"""The SQL of permissions, functions of a transaction."""
# ruff: noqa: S608 - the texts are put together from constants alone

from __future__ import annotations

import hashlib

from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx

REQUEST = "id, team, tool, input, allowed, created_at, expires_at"


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """What a managed agent asks its owner for."""

    id: str
    team: str
    tool: str
    input: str
    """The tool's input as JSON, whole."""
    allowed: int | None
    """The owner's decision; None while there is none."""
    created_at: int
    expires_at: int

    @property
    def digest(self) -> str:
        """What stands for the content of the request: whoever allows it names this."""
        return digest_of(self.tool, self.input)


def digest_of(tool: str, text: str) -> str:
    """What stands for a tool and its input."""
    return hashlib.sha256(f"{tool}\0{text}".encode()).hexdigest()


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
