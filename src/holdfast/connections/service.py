"""Connections: a caller that comes back is the same caller, with its root and its session."""

from __future__ import annotations

import os
from collections.abc import Sequence

from holdfast.caller import Caller
from holdfast.connections import queries
from holdfast.connections.model import SEEN_EVERY_MS, Connection
from holdfast.store import Store, Tx


class Connections:
    """The only door to connections. Methods that take a `tx` are parts of other services' transactions."""

    def __init__(self, store: Store, daemon: str) -> None:
        self._store = store
        self._daemon = daemon

    async def start(self) -> None:
        """Take over from an earlier life of this daemon: a caller whose relay still runs is coming back."""
        known = await self._store.read(lambda tx: queries.attached(tx, self._daemon))
        gone = [identity for identity, pid in known if pid is None or not _is_running(pid)]
        await self._store.write(lambda tx: queries.renew_lease(tx, self._daemon))
        await self._detach_all(gone)

    async def settle(self, attached: set[str]) -> None:
        """Whoever of the earlier life has not come back by now is gone."""
        known = await self._store.read(lambda tx: queries.attached(tx, self._daemon))
        await self._detach_all([identity for identity, _ in known if identity not in attached])

    async def vouch(self) -> None:
        """Renew the daemon's lease; called well within it, as long as the daemon lives."""
        await self._store.write(lambda tx: queries.renew_lease(tx, self._daemon))

    async def stop(self) -> None:
        """An orderly end: relays live on and are expected back; nothing else is attached any more."""
        known = await self._store.read(lambda tx: queries.attached(tx, self._daemon))
        await self._detach_all([identity for identity, pid in known if pid is None])

    async def attach(self, identity: str, pid: int) -> None:
        """A relay connected: if its caller is known, its session is not for others."""
        await self._store.write(lambda tx: queries.attach(tx, identity, self._daemon, pid))

    async def _detach_all(self, identities: list[str]) -> None:
        def write(tx: Tx) -> None:
            for identity in identities:
                queries.detach(tx, identity, self._daemon)

        if identities:
            await self._store.write(write)

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
        fresh = tx.now() - known.seen_at < SEEN_EVERY_MS
        if not fresh or (known.attached_by, known.pid) != (attached_by, caller.pid):
            queries.touch(tx, known.id, attached_by, caller.pid)
        return known

    def bind_root(self, tx: Tx, connection: Connection, uri: str) -> None:
        """Bind the caller to a root; it survives reconnects."""
        queries.set_root(tx, connection.id, uri)
        tx.emit("connection.root_bound", connection.id, {"root": uri})

    def attach_session(self, tx: Tx, connection: Connection, session_id: str | None, *, joined: bool = False) -> None:
        """The caller reasons in this session from now on; `joined` when it named the session itself."""
        if connection.reasoning_session != session_id or (joined and not connection.joined):
            queries.set_session(tx, connection.id, session_id, joined)

    def was_taken_over(self, tx: Tx, connection: Connection) -> bool:
        """Whether another live caller was given this one's session while it was away."""
        if connection.reasoning_session is None or connection.joined:
            return False
        holders = queries.live_holders(tx, [connection.reasoning_session], connection.id)
        return any(not holder.joined for holder in holders.values())

    def live_holders(self, tx: Tx, session_ids: Sequence[str], but: Connection | None) -> dict[str, Connection]:
        """Of these sessions, those that another live caller reasons in."""
        return queries.live_holders(tx, session_ids, but.id if but else None)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's process has the number by now
        return False
    return True
