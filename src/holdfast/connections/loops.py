"""Background work of connections."""

from __future__ import annotations

from holdfast.capability import SETTLE_SECONDS, Loop
from holdfast.connections.service import Connections
from holdfast.wire.mcp.transports import OpenTransports

VOUCH_SECONDS = 10.0
FLUSH_SECONDS = 1.0
REST_SECONDS = 15.0


def loops(connections: Connections, transports: OpenTransports) -> list[Loop]:
    """What a daemon supervises."""

    async def settle() -> None:
        await connections.settle(transports.attached())

    return [
        Loop("settle", settle, first=SETTLE_SECONDS),
        Loop("vouch", connections.vouch, VOUCH_SECONDS, first=VOUCH_SECONDS),
        Loop("flush", connections.flush, FLUSH_SECONDS, first=FLUSH_SECONDS),
        Loop("connections", connections.sweep, REST_SECONDS, first=REST_SECONDS),
    ]
