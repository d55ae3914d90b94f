"""Stores what agents knew at a break and what they were told, once they have been told it: no hook waits for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from holdfast.briefing.knowledge import Knowledge
from holdfast.briefing.queries import breaks
from holdfast.identity.project import Root
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Store

MAX_WAITING = 64
ANSWERED_S = 1.0
"""Seconds to wait before anything is stored, so that the hook is answered first."""


@dataclass(frozen=True, slots=True)
class BreakRecord:
    """A break whose row is stored and whose content is not."""

    row_id: int
    root: Root
    session_id: str
    """The session that was told."""
    told: str
    knew: Callable[[], Knowledge]


class BreakRecords:
    """A queue of records. Whoever reads breaks finishes it first; a daemon that is killed loses what is in it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: deque[BreakRecord] = deque()
        self._added = asyncio.Event()
        self._storing = asyncio.Lock()

    async def add(self, record: BreakRecord) -> None:
        """Store a record soon; at once if many wait."""
        self._waiting.append(record)
        self._added.set()
        if len(self._waiting) >= MAX_WAITING:
            await self.finish()

    async def run(self) -> None:
        """Store what is queued, for as long as the daemon runs."""
        while True:
            await self._added.wait()
            await asyncio.sleep(ANSWERED_S)
            await self.finish()

    async def finish(self) -> None:
        """Store everything that is queued."""
        async with self._storing:
            self._added.clear()
            while self._waiting:
                one = self._waiting.popleft()
                knew = one.knew()
                await self._store.write(
                    partial(
                        breaks.keep,
                        row_id=one.row_id,
                        root=one.root,
                        session_id=one.session_id,
                        told=one.told,
                        knew=knew,
                    )
                )
