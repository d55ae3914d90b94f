"""The keys that sign reconnect tokens: configured, or created once and stored, so that tokens survive restarts."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Protocol

from holdfast.config import SHORTEST_SECRET
from holdfast.errors import Conflict
from holdfast.files import write_private
from holdfast.files.private import UnfitSecret, read_secret
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Store, Tx

FILE = "signing-keys"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A signing key; a retired one still verifies until the last token it signed has expired."""

    kid: str
    secret: str
    created_at: int
    retired_at: int | None = None

    def __post_init__(self) -> None:
        """Refuse a secret that is short enough to guess."""
        if not isinstance(self.secret, str) or len(self.secret.strip()) < SHORTEST_SECRET:
            raise UnfitSecret(
                f"The signing key {self.kid} has fewer than {SHORTEST_SECRET} characters.",
                recovery="Remove it where it is stored (the file signing-keys, or the table signing_keys).",
            )


class KeyShelf(Protocol):
    """Where the signing keys are stored."""

    async def load(self) -> list[SigningKey]:
        """Return every key, in no order."""
        ...

    async def save(self, change: Callable[[list[SigningKey]], list[SigningKey]]) -> list[SigningKey]:
        """Replace the keys by what `change` returns, safe against others who do the same."""
        ...


class FileShelf:
    """A private file of the data directory, for one machine. The daemon's lock keeps other processes away."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE

    async def load(self) -> list[SigningKey]:
        return self._read()

    async def save(self, change: Callable[[list[SigningKey]], list[SigningKey]]) -> list[SigningKey]:
        keys = change(self._read())
        write_private(self._path, json.dumps([asdict(key) for key in keys]))
        return keys

    def _read(self) -> list[SigningKey]:
        try:
            kept = read_secret(self._path)
        except FileNotFoundError:
            return []
        try:
            return [SigningKey(**key) for key in json.loads(kept)]
        except (ValueError, TypeError) as error:
            raise UnfitSecret(
                f"{self._path} does not hold signing keys.",
                recovery=f"Remove it (rm {self._path}): the next start creates new ones, and agents reconnect.",
            ) from error


class SharedShelf:
    """A table of the PostgreSQL database that several machines share."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def load(self) -> list[SigningKey]:
        return await self._store.read(_stored)

    async def save(self, change: Callable[[list[SigningKey]], list[SigningKey]]) -> list[SigningKey]:
        def write(tx: Tx) -> list[SigningKey]:
            from holdfast.connections.queries.keys import replace_signing_keys

            tx.lock("signing-keys")
            keys = change(_stored(tx))
            replace_signing_keys(tx, map(astuple, keys))
            return keys

        return await self._store.write(write)


def _stored(tx: Tx) -> list[SigningKey]:
    from holdfast.connections.queries.keys import signing_keys

    return [SigningKey(*row) for row in signing_keys(tx)]


class SigningRing:
    """The keys in use. `MCP_SESSION_SECRET` signs if it is set; stored keys still verify what they signed."""

    def __init__(self, shelf: KeyShelf, secret: str | None, now: Callable[[], int]) -> None:
        self._shelf = shelf
        self._now = now
        self._given = SigningKey(_kid_of(secret), secret, 0) if secret else None
        self._keys: dict[str, SigningKey] = {}

    async def start(self) -> None:
        """Load the keys; create the first one."""

        def with_one(keys: list[SigningKey]) -> list[SigningKey]:
            return keys if any(key.retired_at is None for key in keys) else [*keys, self._fresh()]

        keys = await self._shelf.load()
        if self._given is None and not any(key.retired_at is None for key in keys):
            keys = await self._shelf.save(with_one)
        self._keys = {key.kid: key for key in keys}

    @property
    def current(self) -> SigningKey:
        if self._given is not None:
            return self._given
        return max((key for key in self._keys.values() if key.retired_at is None), key=lambda key: key.created_at)

    def find(self, kid: object) -> SigningKey | None:
        if self._given is not None and kid == self._given.kid:
            return self._given
        return self._keys.get(kid) if isinstance(kid, str) else None

    async def refresh(self) -> None:
        """Load keys that another machine created."""
        self._keys = {key.kid: key for key in await self._shelf.load()}

    async def rotate(self, honoured_ms: int) -> str:
        """Sign with a new key; drop keys whose last token has expired. Returns the new key's id."""
        if self._given is not None:
            raise Conflict(
                "The signing key is given by MCP_SESSION_SECRET.", recovery="Change that variable, then restart."
            )
        now, fresh = self._now(), self._fresh()

        def rotated(keys: list[SigningKey]) -> list[SigningKey]:
            kept = [
                SigningKey(key.kid, key.secret, key.created_at, key.retired_at or now)
                for key in keys
                if key.retired_at is None or now - key.retired_at <= honoured_ms
            ]
            return [*kept, fresh]

        self._keys = {key.kid: key for key in await self._shelf.save(rotated)}
        return fresh.kid

    def _fresh(self) -> SigningKey:
        return SigningKey(secrets.token_hex(8), secrets.token_urlsafe(48), self._now())


def _kid_of(secret: str) -> str:
    return "env-" + hashlib.sha256(b"holdfast-kid:" + secret.encode()).hexdigest()[:12]
