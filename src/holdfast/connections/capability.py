"""What connections offer: the tool, routes, keys, and who an agent is after its session changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.agents.hook_events import HookKind
from holdfast.capability import SETTLE_SECONDS, Capability, Command, Hook, HookCall, Life, Loop, Phase
from holdfast.config import Settings
from holdfast.connections.rate_limits import AttemptLimits
from holdfast.connections.reconnects import Reconnects
from holdfast.connections.service import Connections
from holdfast.connections.signing_keys import FileShelf, SharedShelf, SigningRing
from holdfast.store import Store
from holdfast.store.from_settings import clock_of

if TYPE_CHECKING:
    from holdfast.connections.keys import Keys
    from holdfast.wire.http.rest import RestRoute
    from holdfast.wire.mcp.tools import Offer
    from holdfast.wire.mcp.transports import OpenTransports

MAX_ID = 128
VOUCH_SECONDS = 10.0
FLUSH_SECONDS = 1.0
REST_SECONDS = 15.0


def make_connections(store: Store, settings: Settings, machine: str) -> Connections:
    """Return the service, with signing keys in the store where machines share it and in a file elsewhere."""
    clock, life_ms = clock_of(settings), settings.connection_life_ms
    shelf = SharedShelf(store) if store.engine == "postgres" else FileShelf(settings.home)
    ring = SigningRing(shelf, settings.session_secret, clock)
    minutes = settings.reconnect_minutes
    reconnects = Reconnects(store, ring, AttemptLimits(), expiry_minutes=minutes, life_ms=life_ms)
    return Connections(store, machine, reconnects, life_ms=life_ms, clock=clock)


def capability(connections: Connections, keys: Callable[[], Keys], transports: OpenTransports) -> Capability:
    def offers() -> list[Offer]:
        import jwt  # noqa: F401 - so that no call waits for it
        import limits.strategies  # noqa: F401 - nor for this

        from holdfast.connections.tools import offer

        return [offer(connections)]

    def routes() -> list[RestRoute]:
        from holdfast.connections.routes import routes

        return routes(connections)

    def commands() -> list[Command]:
        from holdfast.connections.commands import commands

        return commands(connections, keys())

    async def settle() -> None:
        await connections.settle(transports.attached())

    async def rebind(call: HookCall) -> None:
        """Send the relay the new session id after /clear or an in-process resume: it still has the old one."""
        session = call.event.session_id
        if call.event.kind is not HookKind.STARTED or call.pid is None or not 0 < len(session) <= MAX_ID:
            return
        for identity in transports.rebind(call.pid, session):
            if identity not in transports.attached():
                await connections.detach(identity)

    return Capability(
        name="connections",
        service=connections,
        offers=offers,
        routes=routes,
        commands=commands,
        loops=lambda: [
            Loop("settle", settle, first=SETTLE_SECONDS),
            Loop("vouch", connections.vouch, VOUCH_SECONDS, first=VOUCH_SECONDS),
            Loop("flush", connections.flush, FLUSH_SECONDS, first=FLUSH_SECONDS),
            Loop("connections", connections.sweep, REST_SECONDS, first=REST_SECONDS),
        ],
        hooks=[Hook(rebind, Phase.PREPARE)],
        life=Life(start=connections.start, sweep=connections.forget_old, leave=connections.stop),
    )
