"""The SQL of keys: those of HTTP clients, and those that sign tokens. Functions of a transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from holdfast.store import Tx

if TYPE_CHECKING:
    from holdfast.connections.results import StoredKey

SigningRow = tuple[str, str, int, int | None]
"""A key that signs tokens: its id, its secret, when it was made and when it was retired."""


def is_known(tx: Tx, name: str) -> bool:
    return tx.one("SELECT 1 AS known FROM api_keys WHERE name = :name", name=name) is not None


def add(tx: Tx, name: str, scope: str, digest: str, teams: Sequence[str] | None) -> None:
    """Store the hash of a key, limited to teams where some are named."""
    tx.run(
        "INSERT INTO api_keys (id, name, scope, hash, created_at, teams)"
        " VALUES (:id, :name, :scope, :hash, :now, :teams)",
        id=tx.new_id(),
        name=name,
        scope=scope,
        hash=digest,
        now=tx.now(),
        teams=json.dumps(sorted(set(teams))) if teams else None,
    )
    tx.emit("key.created", name, {"scope": scope})


def revoke(tx: Tx, name: str) -> bool:
    """Revoke a key; False if no valid key has that name."""
    sql = "UPDATE api_keys SET revoked_at = :now WHERE name = :name AND revoked_at IS NULL"
    if not tx.run(sql, now=tx.now(), name=name):
        return False
    tx.emit("key.revoked", name)
    return True


def every(tx: Tx) -> list[StoredKey]:
    from holdfast.connections.results import StoredKey

    rows = tx.all("SELECT name, scope, hash, teams, created_at, revoked_at FROM api_keys ORDER BY created_at, name")
    limits = [None if row["teams"] is None else tuple(json.loads(row["teams"])) for row in rows]
    return [StoredKey(**row | {"teams": teams}) for row, teams in zip(rows, limits, strict=True)]


def signing_keys(tx: Tx) -> list[SigningRow]:
    rows = tx.all("SELECT kid, secret, created_at, retired_at FROM signing_keys")
    return [(row["kid"], row["secret"], row["created_at"], row["retired_at"]) for row in rows]


def replace_signing_keys(tx: Tx, keys: Iterable[SigningRow]) -> None:
    tx.run("DELETE FROM signing_keys")
    for kid, secret, created_at, retired_at in keys:
        sql = (
            "INSERT INTO signing_keys (kid, secret, created_at, retired_at)"
            " VALUES (:kid, :secret, :created_at, :retired_at)"
        )
        tx.run(sql, kid=kid, secret=secret, created_at=created_at, retired_at=retired_at)
