"""The daemon's own background work, beside that of the rooms."""

from __future__ import annotations

import asyncio
import time

from holdfast.app import App
from holdfast.capability import HOUR_SECONDS, Loop, Step
from holdfast.daemon.clock_leaps import LeapWatch
from holdfast.relay.answers import prune
from holdfast.store import events
from holdfast.version import __version__
from holdfast.wire.mcp.server import Wire

LEAP_SECONDS = 1.0
ANNOUNCE_SECONDS = 0.05
"""How long changes are gathered, so that a busy writer does not pay for a read after each of its thoughts."""


def own_loops(app: App, wire: Wire, leaps: LeapWatch, watch: Step, watch_seconds: float) -> list[Loop]:
    """Return the daemon's own background loops; `watch` checks whether the daemon is still needed."""

    async def announce() -> None:
        since = await app.store.read(events.head)
        async for batch in events.follow(app.store, since):
            await wire.announce(batch)
            for one in app.capabilities:
                one.life.on_events(batch)
            await asyncio.sleep(ANNOUNCE_SECONDS)

    async def look_for_leap() -> None:
        await leaps.carry_over(app.store)

    async def sweep() -> None:
        for one in app.capabilities:
            await one.life.sweep()

    async def prune_answers() -> None:
        """Remove what relays kept for callers that have not come for long."""
        await asyncio.to_thread(prune, str(app.settings.home), __version__, time.time())

    return [
        Loop("announce", announce),
        Loop("clock", look_for_leap, LEAP_SECONDS),
        Loop("sweep", sweep, HOUR_SECONDS, first=60.0),
        Loop("answers", prune_answers, HOUR_SECONDS, first=120.0),
        Loop("watch", watch, watch_seconds),
    ]
