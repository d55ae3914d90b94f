"""Keys of HTTP clients: the one in the data directory, and named ones with a scope, kept as hashes."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from holdfast.errors import BadInput, Conflict, NotFound
from holdfast.store import Row, Store, Tx

FRESH_SECONDS = 5.0
"""How long a key that another daemon revoked may still be honoured here."""
OWNER = "owner"


class Scope(StrEnum):
    """What a key allows."""

    ADMIN = "admin"
    READ = "read"


@dataclass(frozen=True, slots=True)
class Key:
    """Who holds a key."""

    name: str
    scope: Scope
    teams: frozenset[str] | None = None
    """The teams that it is limited to; None where it is not."""


class Keys:
    """Checks keys, makes and revokes them."""

    def __init__(self, store: Store, owners: str) -> None:
        self._store = store
        self._owners = _digest(owners)
        self._known: list[tuple[str, Key]] = []
        self._read_at = float("-inf")

    async def check(self, given: str) -> Key | None:
        """Whose key this is. Every hash is compared, and each in constant time. An empty key is nobody's."""
        if time.monotonic() - self._read_at > FRESH_SECONDS:
            await self._reload()
        presented = _digest(given)
        found = Key(OWNER, Scope.ADMIN) if hmac.compare_digest(presented, self._owners) else None
        for kept, key in self._known:
            if hmac.compare_digest(presented, kept):
                found = key
        return found if given else None

    async def create(self, name: str, scope: Scope, teams: Sequence[str] | None = None) -> str:
        """A new key, limited to teams where some are named; it is told once and never again."""
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name) or name == OWNER:
            raise BadInput("name", "must be 1 to 64 of A-Z a-z 0-9 . _ - (and not 'owner')")
        for team in teams or ():
            if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", team):
                raise BadInput("team", "must be the name of a team: 1 to 64 of A-Z a-z 0-9 . _ -")
        secret = f"hf_{secrets.token_urlsafe(32)}"

        def write(tx: Tx) -> None:
            tx.lock("api-keys")
            if tx.one("SELECT 1 AS known FROM api_keys WHERE name = :name", name=name):
                raise Conflict(f"There is a key {name} already.", recovery="Choose another name.")
            tx.run(
                "INSERT INTO api_keys (id, name, scope, hash, created_at, teams)"
                " VALUES (:id, :name, :scope, :hash, :now, :teams)",
                id=tx.new_id(),
                name=name,
                scope=scope.value,
                hash=_digest(secret),
                now=tx.now(),
                teams=json.dumps(sorted(set(teams))) if teams else None,
            )
            tx.emit("key.created", name, {"scope": scope.value})

        await self._store.write(write)
        await self._reload()
        return secret

    async def revoke(self, name: str) -> None:
        """A key that is no longer honoured."""

        def write(tx: Tx) -> None:
            changed = tx.run(
                "UPDATE api_keys SET revoked_at = :now WHERE name = :name AND revoked_at IS NULL",
                now=tx.now(),
                name=name,
            )
            if not changed:
                raise NotFound(f"There is no key {name} in force.", recovery="`holdfast key list` lists them.")
            tx.emit("key.revoked", name)

        await self._store.write(write)
        await self._reload()

    async def list(self) -> list[dict[str, Any]]:
        """Every key without its secret."""
        rows = await self._store.read(
            lambda tx: tx.all(
                "SELECT name, scope, created_at, revoked_at, teams FROM api_keys ORDER BY created_at, name"
            )
        )
        return [{**row, "teams": json.loads(row["teams"]) if row["teams"] else None} for row in rows]

    async def _reload(self) -> None:
        rows = await self._store.read(
            lambda tx: tx.all("SELECT name, scope, hash, teams FROM api_keys WHERE revoked_at IS NULL")
        )
        self._known = [(row["hash"], _key(row)) for row in rows]
        self._read_at = time.monotonic()


def _key(row: Row) -> Key:
    teams = frozenset(json.loads(row["teams"])) if row["teams"] is not None else None
    return Key(row["name"], Scope(row["scope"]), teams)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
