"""Connections: a caller that comes back is the same caller, with its root and its session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.connections.model import SEEN_EVERY_MS, Connection, Issued, ToolCall
from holdfast.connections.queries import audit, connections, tokens, usage
from holdfast.connections.reconnects import Reconnects
from holdfast.connections.usage import Usage
from holdfast.identity.caller import Caller
from holdfast.process.alive import is_running
from holdfast.store import Clock, Store, Tx

if TYPE_CHECKING:
    from holdfast.connections.results import AuditLine, ToolFigures, ToolLatency

AT_ONCE = 200
KEEP_TOKENS_MS = 24 * 3_600_000
KEEP_ENDED_MS = 30 * 24 * 3_600_000


class Connections:
    """Recognises callers across reconnects; the entry point for others. Methods with a `tx` join a transaction."""

    def __init__(self, store: Store, daemon: str, reconnects: Reconnects, *, life_ms: int, clock: Clock) -> None:
        self._store = store
        self._daemon = daemon
        self._life_ms = life_ms
        self.reconnects = reconnects
        self.usage = Usage(store, clock)

    async def start(self) -> None:
        """Take over from this daemon's previous run: callers whose relay still runs are expected back."""
        await self.reconnects.start()
        attached = await self._store.read(lambda tx: connections.attached(tx, self._daemon))
        gone = [identity for identity, pid in attached if pid is None or not is_running(pid)]
        await self._store.write(lambda tx: connections.renew_lease(tx, self._daemon))
        await self._detach_all(gone)

    async def settle(self, attached: set[str]) -> None:
        """Detach callers of the previous run that have not come back by now."""
        known = await self._store.read(lambda tx: connections.attached(tx, self._daemon))
        await self._detach_all([identity for identity, _ in known if identity not in attached])

    async def vouch(self) -> None:
        """Renew the daemon's lease, by which its callers count as live."""
        await self._store.write(lambda tx: connections.renew_lease(tx, self._daemon))

    async def stop(self) -> None:
        """Stop in order: relays stay and are expected back; all other callers are detached and can come back."""
        attached = await self._store.read(lambda tx: connections.attached(tx, self._daemon))
        await self._detach_all([identity for identity, pid in attached if pid is None])
        await self._store.write(connections.let_go)
        await self.flush()

    async def flush(self) -> None:
        """Write the figures and refusals gathered in memory."""
        await self.usage.flush()
        await self.reconnects.flush()

    async def sweep(self) -> None:
        """Mark connections as idle, detached or expired."""

        def rest(tx: Tx) -> None:
            connections.renew_lease(tx, self._daemon)  # else a leap of the clock would detach this daemon's own callers
            connections.rest(tx)

        await self._store.write(rest)
        while len(await self._store.write(self._expire)) == AT_ONCE:
            continue

    async def forget_old(self) -> None:
        """Delete tokens, connections, figures and audit lines that are past retention."""
        await self._store.write(lambda tx: tokens.forget_expired(tx, KEEP_TOKENS_MS))
        await self._store.write(lambda tx: connections.forget_ended(tx, KEEP_ENDED_MS))
        await self._store.write(usage.forget_old)
        await self._store.write(audit.forget_old)

    def _expire(self, tx: Tx) -> list[str]:
        expired = connections.expire(tx, self._life_ms, AT_ONCE)
        for connection_id in expired:
            tx.emit("connection.expired", connection_id)
        return expired

    async def attach(self, identity: str, pid: int) -> None:
        """Note that a relay connected: if its caller is known, its session is not given to others."""
        await self._store.write(lambda tx: connections.attach(tx, identity, self._daemon, pid))

    async def detach(self, identity: str) -> None:
        await self._store.write(lambda tx: connections.detach(tx, identity, self._daemon))

    async def _detach_all(self, identities: list[str]) -> None:
        def write(tx: Tx) -> None:
            for identity in identities:
                connections.detach(tx, identity, self._daemon)

        if identities:
            await self._store.write(write)

    async def find(self, identity: str) -> Connection | None:
        """Return the connection of a recognised caller, if it ever called a tool."""
        return await self._store.read(lambda tx: connections.by_identity(tx, identity))

    async def get(self, connection_id: str) -> Connection | None:
        return await self._store.read(lambda tx: connections.by_id(tx, connection_id))

    async def newest(self, *, ended: bool, before: tuple[int, str] | None, limit: int) -> list[Connection]:
        return await self._store.read(lambda tx: connections.newest(tx, ended=ended, before=before, limit=limit))

    async def connected(self, limit: int) -> list[Connection]:
        """Return the callers whose transport is open, the last heard of first."""
        return await self._store.read(lambda tx: connections.connected(tx, limit))

    async def unconnected(self, before: tuple[int, str] | None, limit: int) -> list[Connection]:
        """Return the others, the last heard of first; `before` is when the last of a page was heard of, and its id."""
        return await self._store.read(lambda tx: connections.unconnected(tx, before, limit))

    async def meet(self, caller: Caller, *, tell_token: bool) -> tuple[Connection, Issued | None]:
        """Return the caller's connection, created by its first call; with `tell_token` a new one comes with a token."""

        def write(tx: Tx) -> tuple[Connection, Issued | None]:
            connection, created = self._current(tx, caller)
            return connection, self.reconnects.issue_in(tx, connection.id) if created and tell_token else None

        return await self._store.write(write)

    async def meet_stranger(self, caller: Caller) -> tuple[Connection, Issued]:
        """Create a connection for an unrecognised caller, with the token by which it is recognised later."""

        def write(tx: Tx) -> tuple[Connection, Issued]:
            connection = self._create(tx, caller)
            return connection, self.reconnects.issue_in(tx, connection.id)

        return await self._store.write(write)

    async def renew_token(self, connection_id: str) -> Issued:
        return await self._store.write(lambda tx: self.reconnects.issue_in(tx, connection_id))

    def current(self, tx: Tx, caller: Caller) -> Connection | None:
        """Return the caller's connection; None for an unrecognised caller."""
        return None if caller.identity is None else self._current(tx, caller)[0]

    def _current(self, tx: Tx, caller: Caller) -> tuple[Connection, bool]:
        identity = caller.identity or ""
        attached_by = self._daemon if caller.live else None
        tx.lock(f"connection:{identity}")
        known = connections.by_identity(tx, identity)
        if known is None:
            return self._create(tx, caller), True
        fresh = tx.now() - known.seen_at < SEEN_EVERY_MS and known.state == "active"
        if not fresh or (known.attached_by, known.pid) != (attached_by, caller.pid):
            connections.touch(tx, known.id, caller, attached_by)
        return known, False

    def _create(self, tx: Tx, caller: Caller) -> Connection:
        created = connections.create(tx, caller, self._daemon if caller.live else None, tx.new_id())
        tx.emit("connection.created", created.id, {"transport": created.transport, "era": created.era})
        return created

    def bind_root(self, tx: Tx, connection: Connection, uri: str) -> None:
        """Bind the caller to a root, across reconnects."""
        connections.set_root(tx, connection.id, uri)
        tx.emit("connection.root_bound", connection.id, {"root": uri})

    def attach_session(self, tx: Tx, connection: Connection, session_id: str | None, *, joined: bool = False) -> None:
        """Note that the caller is in this session; `joined` if it named the session itself."""
        if connection.reasoning_session != session_id or (joined and not connection.joined):
            connections.set_session(tx, connection.id, session_id, joined)

    def was_taken_over(self, tx: Tx, connection: Connection) -> bool:
        """Return whether another live caller was given this one's session while it was away."""
        if connection.reasoning_session is None or connection.joined:
            return False
        return connections.is_held(tx, connection.reasoning_session, connection.id)

    def live_holders(self, tx: Tx, session_ids: Sequence[str], but: Connection | None) -> list[Connection]:
        """Return the other live callers in these sessions, one per session."""
        return connections.live_holders(tx, session_ids, but.id if but else None)

    async def requests(self, connection_id: str, before: int | None, limit: int) -> list[ToolCall]:
        return await self._store.read(lambda tx: usage.of_connection(tx, connection_id, before, limit))

    async def active_steps(self, within_ms: int, step_ms: int) -> list[tuple[str, int]]:
        """Return the steps of time in which each connection called a tool, lately."""
        return await self._store.read(lambda tx: usage.active_steps(tx, tx.now() - within_ms, step_ms))

    async def usage_by_tool(self, since: int | None) -> list[ToolFigures]:
        return await self._store.read(lambda tx: usage.by_tool(tx, since or 0))

    async def latencies(self, newest: int) -> list[ToolLatency]:
        """Return how long each tool took, over so many calls; those of the last seconds may be missing."""
        return await self._store.read(lambda tx: usage.latencies(tx, newest))

    async def audit_lines(self, connection_id: str | None, before: int | None, limit: int) -> list[AuditLine]:
        return await self._store.read(lambda tx: audit.read(tx, connection_id, before, limit))
