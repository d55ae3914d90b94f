"""Keys of HTTP clients: the one in the data directory, and named ones with a scope, kept as hashes."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from holdfast.connections.queries import keys
from holdfast.errors import BadInput, Conflict, NotFound
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Store, Tx

if TYPE_CHECKING:
    from holdfast.connections.results import StoredKey

FRESH_SECONDS = 5.0
"""How long a key that another daemon revoked may still be accepted here."""
OWNER = "owner"


class Scope(StrEnum):
    ADMIN = "admin"
    READ = "read"


@dataclass(frozen=True, slots=True)
class Key:
    """The name, scope and teams of a key."""

    name: str
    scope: Scope
    teams: frozenset[str] | None = None
    """The teams that it is limited to, if any."""


class Keys:
    def __init__(self, store: Store, owners: str) -> None:
        self._store = store
        self._owners = _digest(owners)
        self._known: list[tuple[str, Key]] = []
        self._read_at = float("-inf")

    async def check(self, given: str) -> Key | None:
        """Find the owner of a key. Every hash is compared, each in constant time. An empty key has no owner."""
        if time.monotonic() - self._read_at > FRESH_SECONDS:
            await self._reload()
        presented = _digest(given)
        owner = Key(OWNER, Scope.ADMIN) if hmac.compare_digest(presented, self._owners) else None
        for kept, key in self._known:
            if hmac.compare_digest(presented, kept):
                owner = key
        return owner if given else None

    async def create(self, name: str, scope: Scope, teams: Sequence[str] | None = None) -> str:
        """Create a key, limited to teams where some are named; it is shown once and never again."""
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name) or name == OWNER:
            raise BadInput("name", "must be 1 to 64 of A-Z a-z 0-9 . _ - (and not 'owner')")
        for team in teams or ():
            if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", team):
                raise BadInput("team", "must be the name of a team: 1 to 64 of A-Z a-z 0-9 . _ -")
        secret = f"hf_{secrets.token_urlsafe(32)}"

        def write(tx: Tx) -> None:
            tx.lock("api-keys")
            if keys.is_known(tx, name):
                raise Conflict(f"A key named {name} already exists.", recovery="Choose another name.")
            keys.add(tx, name, scope.value, _digest(secret), teams)

        await self._store.write(write)
        await self._reload()
        return secret

    async def revoke(self, name: str) -> None:
        def write(tx: Tx) -> None:
            if not keys.revoke(tx, name):
                raise NotFound(f"No valid key is named {name}.", recovery="`holdfast key list` lists them.")

        await self._store.write(write)
        await self._reload()

    async def list(self) -> list[StoredKey]:
        """List every key without its secret, the revoked ones too."""
        return await self._store.read(keys.every)

    async def _reload(self) -> None:
        in_force = [key for key in await self._store.read(keys.every) if key.revoked_at is None]
        self._known = [(key.hash, _key(key)) for key in in_force]
        self._read_at = time.monotonic()


def _key(stored: StoredKey) -> Key:
    return Key(stored.name, Scope(stored.scope), None if stored.teams is None else frozenset(stored.teams))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
