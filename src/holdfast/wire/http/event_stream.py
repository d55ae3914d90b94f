"""One stream of the event log for browsers: server-sent events of kinds, subjects and numbers, and no content.

A stream is nothing but a cursor. The newest events are kept once for all streams; whoever is further behind reads the
store, and whoever is too far behind is told to look at everything again. So a slow reader holds up nobody.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from holdfast.errors import Busy
from holdfast.store import Store, events
from holdfast.store.events import Event

KEPT = 1_000
"""Events that are kept in memory, and as many as a stream may be behind."""
MAX_STREAMS = 100
BEAT_SECONDS = 15.0
"""How often a silent stream tells that it is still there, and looks whether its reader may still read."""
ENDS = ("browser.ended", "key.revoked")
"""After these a stream looks at once whether its reader may still read."""
RETRY_MS = 1_000
"""How soon a browser comes back by itself."""

Allows = Callable[[Event], bool]
Holds = Callable[[], Awaitable[bool]]

GATHERED_SECONDS = 0.1
"""How long events are gathered after some were told: agents that record many would wait for every stream."""


class EventStreams:
    """The streams that are open, and what they have in common."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._newest: deque[Event] = deque(maxlen=KEPT)
        self._open: set[asyncio.Event] = set()
        self._ended = False

    @property
    def open(self) -> int:
        """How many streams are open."""
        return len(self._open)

    def on_events(self, batch: Sequence[Event]) -> None:
        """Take in what was committed a moment ago."""
        if self._newest and batch and batch[0].seq != self._newest[-1].seq + 1:
            self._newest.clear()  # a part was missed, so the store is asked
        self._newest.extend(batch)
        self._wake()

    def end(self) -> None:
        """End every stream: an orderly stop of the port waits for them."""
        self._ended = True
        self._wake()

    async def head(self) -> int:
        """Return the number of the newest event."""
        return self._newest[-1].seq if self._newest else await self._store.read(events.head)

    def last_other(self, seen: int, kinds: tuple[str, ...]) -> int:
        """Return the number of the newest event up to `seen` whose kind begins with none of these words.

        If that is not known, it is the highest number that it can have."""
        newest = self._newest
        others = (one.seq for one in reversed(newest) if one.seq <= seen and not one.kind.startswith(kinds))
        return next(others, min(seen, newest[0].seq - 1) if newest else seen)

    async def follow(self, after: int | None, allows: Allows, holds: Holds) -> AsyncIterator[bytes]:
        """Yield events after a number, or from now on, for as long as the reader's right to read holds."""
        if len(self._open) >= MAX_STREAMS:
            raise Busy(f"{MAX_STREAMS} streams are open.", recovery="Close a tab.")
        woken = asyncio.Event()
        self._open.add(woken)
        try:
            yield f"retry: {RETRY_MS}\n\n".encode()
            cursor = await self._store.read(events.head) if after is None else after
            while not self._ended:
                woken.clear()
                batch = await self._after(cursor)
                if batch is None:
                    cursor = await self._store.read(events.head)
                    yield f"id: {cursor}\nevent: reset\ndata: {{}}\n\n".encode()
                elif batch:
                    cursor = batch[-1].seq
                    yield b"".join(_written(event) for event in batch if allows(event)) or b":\n\n"
                    if any(event.kind in ENDS for event in batch) and not await holds():
                        return
                    await asyncio.sleep(GATHERED_SECONDS)
                elif not await _within(BEAT_SECONDS, woken):
                    if not await holds():
                        return
                    yield b"event: beat\ndata: {}\n\n"
        finally:
            self._open.discard(woken)

    async def _after(self, cursor: int) -> list[Event] | None:
        """Return the next events; None if there are too many, or they were deleted."""
        newest = self._newest
        if newest and newest[0].seq <= cursor + 1 <= newest[-1].seq + 1:
            return [event for event in newest if event.seq > cursor]
        head = await self._store.read(events.head)
        if not 0 <= head - cursor <= KEPT:
            return None
        found = await self._store.read(lambda tx: events.after(tx, cursor, KEPT))
        return found if not found or found[0].seq == cursor + 1 else None

    def _wake(self) -> None:
        for woken in self._open:
            woken.set()


async def _within(seconds: float, woken: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await woken.wait()
    except TimeoutError:
        return False


def _written(event: Event) -> bytes:
    data = json.dumps({"kind": event.kind, "subject": event.subject, "at": event.at}, separators=(",", ":"))
    return f"id: {event.seq}\ndata: {data}\n\n".encode()
