"""Services put together for tests that need no daemon."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.connections.rate_limits import AttemptLimits
from holdfast.connections.reconnects import Reconnects
from holdfast.connections.service import Connections
from holdfast.connections.signing_keys import SigningKey, SigningRing
from holdfast.store import Clock, Store
from holdfast.store.sqlite import system_clock

DAY_MS = 24 * 3_600_000


class MemoryShelf:
    """Signing keys that are gone with the test."""

    def __init__(self) -> None:
        self.keys: list[SigningKey] = []

    async def load(self) -> list[SigningKey]:
        return self.keys

    async def save(self, change: Callable[[list[SigningKey]], list[SigningKey]]) -> list[SigningKey]:
        self.keys = change(self.keys)
        return self.keys


def make_connections(
    store: Store,
    daemon: str = "daemon-1",
    *,
    clock: Clock = system_clock,
    shelf: MemoryShelf | None = None,
    limits: AttemptLimits | None = None,
    life_ms: int = DAY_MS,
) -> Connections:
    """Connections on a store, with keys in memory."""
    ring = SigningRing(shelf or MemoryShelf(), None, clock)
    reconnects = Reconnects(store, ring, limits or AttemptLimits(), expiry_minutes=15, life_ms=life_ms)
    return Connections(store, daemon, reconnects, life_ms=life_ms, clock=clock)
