"""Connections: a caller that comes back is the same caller, with its root and its session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.connections.model import SEEN_EVERY_MS, Connection, Issued
from holdfast.connections.queries import audit, connections, tokens, usage
from holdfast.connections.reconnects import Reconnects
from holdfast.connections.usage import Usage
from holdfast.identity.caller import Caller
from holdfast.process.alive import is_running
from holdfast.store import Clock, Store, Tx

if TYPE_CHECKING:
    from holdfast.connections.results import AuditLine, CountedCall, ToolFigures

AT_ONCE = 200
KEEP_TOKENS_MS = 24 * 3_600_000
KEEP_ENDED_MS = 30 * 24 * 3_600_000


class Connections:
    """The only door to connections. Methods that take a `tx` are parts of other services' transactions."""

    def __init__(self, store: Store, daemon: str, reconnects: Reconnects, *, life_ms: int, clock: Clock) -> None:
        self._store = store
        self._daemon = daemon
        self._life_ms = life_ms
        self.reconnects = reconnects
        self.usage = Usage(store, clock)

    # -- the daemon's life --------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take over from an earlier life of this daemon: a caller whose relay still runs is coming back."""
        await self.reconnects.start()
        known = await self._store.read(lambda tx: connections.attached(tx, self._daemon))
        gone = [identity for identity, pid in known if pid is None or not is_running(pid)]
        await self._store.write(lambda tx: connections.renew_lease(tx, self._daemon))
        await self._detach_all(gone)

    async def settle(self, attached: set[str]) -> None:
        """Whoever of the earlier life has not come back by now is gone."""
        known = await self._store.read(lambda tx: connections.attached(tx, self._daemon))
        await self._detach_all([identity for identity, _ in known if identity not in attached])

    async def vouch(self) -> None:
        """Renew the daemon's lease; called well within it, as long as the daemon lives."""
        await self._store.write(lambda tx: connections.renew_lease(tx, self._daemon))

    async def stop(self) -> None:
        """An orderly end: relays live on and are expected back; everybody else is detached and can come back."""
        known = await self._store.read(lambda tx: connections.attached(tx, self._daemon))
        await self._detach_all([identity for identity, pid in known if pid is None])
        await self._store.write(connections.let_go)
        await self.flush()

    async def flush(self) -> None:
        """Write down what was gathered in memory."""
        await self.usage.flush()
        await self.reconnects.flush()

    async def sweep(self) -> None:
        """Let connections rest and expire."""

        def rest(tx: Tx) -> None:
            connections.renew_lease(tx, self._daemon)  # else a leap of the clock would detach this daemon's own callers
            connections.rest(tx)

        await self._store.write(rest)
        while len(await self._store.write(self._expire)) == AT_ONCE:
            continue

    async def forget_old(self) -> None:
        """Drop what is past keeping."""
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
        """A relay connected: if its caller is known, its session is not for others."""
        await self._store.write(lambda tx: connections.attach(tx, identity, self._daemon, pid))

    async def detach(self, identity: str) -> None:
        """The caller's transport is gone."""
        await self._store.write(lambda tx: connections.detach(tx, identity, self._daemon))

    async def _detach_all(self, identities: list[str]) -> None:
        def write(tx: Tx) -> None:
            for identity in identities:
                connections.detach(tx, identity, self._daemon)

        if identities:
            await self._store.write(write)

    # -- callers ------------------------------------------------------------------------------------------------------

    async def find(self, identity: str) -> Connection | None:
        """The connection of a recognised caller, if it ever called a tool."""
        return await self._store.read(lambda tx: connections.by_identity(tx, identity))

    async def get(self, connection_id: str) -> Connection | None:
        """The connection with this id."""
        return await self._store.read(lambda tx: connections.by_id(tx, connection_id))

    async def newest(self, *, ended: bool, before: tuple[int, str] | None, limit: int) -> list[Connection]:
        """Connections, the newest first."""
        return await self._store.read(lambda tx: connections.newest(tx, ended=ended, before=before, limit=limit))

    async def meet(self, caller: Caller, *, tell_token: bool) -> tuple[Connection, Issued | None]:
        """The caller's connection, made by its first call; a new one comes with a token if it is to be told one."""

        def write(tx: Tx) -> tuple[Connection, Issued | None]:
            connection, created = self._current(tx, caller)
            return connection, self.reconnects.issue_in(tx, connection.id) if created and tell_token else None

        return await self._store.write(write)

    async def meet_stranger(self, caller: Caller) -> tuple[Connection, Issued]:
        """A connection for a caller that nothing tells from others; its token is how it stays itself."""

        def write(tx: Tx) -> tuple[Connection, Issued]:
            connection = self._create(tx, caller)
            return connection, self.reconnects.issue_in(tx, connection.id)

        return await self._store.write(write)

    async def renew_token(self, connection_id: str) -> Issued:
        """Another token for a caller whose last one is past half its life."""
        return await self._store.write(lambda tx: self.reconnects.issue_in(tx, connection_id))

    def current(self, tx: Tx, caller: Caller) -> Connection | None:
        """The caller's connection; None for a stranger, which is a new one every time."""
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
        """Bind the caller to a root; it survives reconnects."""
        connections.set_root(tx, connection.id, uri)
        tx.emit("connection.root_bound", connection.id, {"root": uri})

    def attach_session(self, tx: Tx, connection: Connection, session_id: str | None, *, joined: bool = False) -> None:
        """The caller reasons in this session from now on; `joined` when it named the session itself."""
        if connection.reasoning_session != session_id or (joined and not connection.joined):
            connections.set_session(tx, connection.id, session_id, joined)

    def was_taken_over(self, tx: Tx, connection: Connection) -> bool:
        """Whether another live caller was given this one's session while it was away."""
        if connection.reasoning_session is None or connection.joined:
            return False
        return connections.is_held(tx, connection.reasoning_session, connection.id)

    def live_holders(self, tx: Tx, session_ids: Sequence[str], but: Connection | None) -> list[Connection]:
        """The other live callers that reason in these sessions, one of each session."""
        return connections.live_holders(tx, session_ids, but.id if but else None)

    # -- what is told of them -----------------------------------------------------------------------------------------

    async def requests(self, connection_id: str, before: int | None, limit: int) -> list[CountedCall]:
        """A connection's tool calls, the newest first."""
        return await self._store.read(lambda tx: usage.of_connection(tx, connection_id, before, limit))

    async def usage_by_tool(self, since: int | None) -> list[ToolFigures]:
        """Calls, errors and durations of every tool."""
        return await self._store.read(lambda tx: usage.by_tool(tx, since or 0))

    async def audit_lines(self, connection_id: str | None, before: int | None, limit: int) -> list[AuditLine]:
        """Lines of the audit, the newest first."""
        return await self._store.read(lambda tx: audit.read(tx, connection_id, before, limit))
