"""Connections: a caller that comes back is the same caller, with its root and its session."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.caller import Caller
from holdfast.connections import queries
from holdfast.connections.model import Connection
from holdfast.store import Store, Tx


class Connections:
    """The only door to connections. Methods that take a `tx` are parts of other services' transactions."""

    def __init__(self, store: Store, daemon: str) -> None:
        self._store = store
        self._daemon = daemon

    async def start(self) -> None:
        """Forget whom an earlier life of this daemon had attached, and vouch for those to come."""

        def write(tx: Tx) -> None:
            queries.detach_all(tx, self._daemon)
            queries.renew_lease(tx, self._daemon)

        await self._store.write(write)

    async def vouch(self) -> None:
        """Renew the daemon's lease; called well within it, as long as the daemon lives."""
        await self._store.write(lambda tx: queries.renew_lease(tx, self._daemon))

    async def stop(self) -> None:
        """An orderly end: nobody is attached any more, and everybody can come back."""
        await self._store.write(lambda tx: queries.detach_all(tx, self._daemon))

    async def find(self, identity: str) -> Connection | None:
        """The connection of a recognised caller, if it ever called a tool."""
        return await self._store.read(lambda tx: queries.by_identity(tx, identity))

    async def detach(self, identity: str) -> None:
        """The caller's transport is gone."""
        await self._store.write(lambda tx: queries.detach(tx, identity, self._daemon))

    def current(self, tx: Tx, caller: Caller) -> Connection | None:
        """The caller's connection, made by its first call; None for a stranger, which is a new one every time."""
        if caller.identity is None:
            return None
        attached_by = self._daemon if caller.live else None
        tx.lock(f"connection:{caller.identity}")
        known = queries.by_identity(tx, caller.identity)
        if known is None:
            created = queries.create(tx, caller, attached_by)
            tx.emit("connection.created", created.id, {"transport": created.transport, "era": created.era})
            return created
        queries.touch(tx, known.id, attached_by)
        return known

    def bind_root(self, tx: Tx, connection: Connection, uri: str) -> None:
        """Bind the caller to a root; it survives reconnects."""
        queries.set_root(tx, connection.id, uri)
        tx.emit("connection.root_bound", connection.id, {"root": uri})

    def attach_session(self, tx: Tx, connection: Connection, session_id: str | None) -> None:
        """The caller reasons in this session from now on."""
        if connection.reasoning_session != session_id:
            queries.set_session(tx, connection.id, session_id)

    def live_holders(self, tx: Tx, session_ids: Sequence[str], but: Connection | None) -> dict[str, Connection]:
        """Of these sessions, those that another live caller reasons in."""
        return queries.live_holders(tx, session_ids, but.id if but else None)
