"""Readiness: whether the store answers. The database is asked at most once a second, however often clients ask."""

from __future__ import annotations

import asyncio
import time

from holdfast.errors import HoldfastError
from holdfast.store import Store, ping
from holdfast.store.outage import Outage

KEPT_SECONDS = 1.0
ANSWER_SECONDS = 2.0
KNOWN_SECONDS = 0.2
"""How long to wait for a store that is known to be down: it may be back."""


class Readiness:
    """Looks for outages of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asking: asyncio.Task[Outage | None] | None = None
        self._asked = 0.0
        self._silent_since: int | None = None

    async def outage(self) -> Outage | None:
        """Return since when the store does not answer, and why; None while it does."""
        asking = self._asking
        if asking is None or (asking.done() and time.monotonic() - self._asked > KEPT_SECONDS):
            self._asked = time.monotonic()
            asking = self._asking = asyncio.get_running_loop().create_task(self._ask())
        limit = ANSWER_SECONDS if self._store.outage is None else KNOWN_SECONDS
        found, _ = await asyncio.wait([asking], timeout=limit)
        outage = asking.result() if found else self._silence(f"The store did not answer within {ANSWER_SECONDS:.0f} s.")
        if outage is None:
            self._silent_since = None
        return outage

    async def _ask(self) -> Outage | None:
        try:
            await self._store.read(ping)
        except HoldfastError as error:
            return self._silence(error.message, error.recovery)
        return None

    def _silence(self, reason: str, repair: str | None = None) -> Outage:
        """Return the outage that the store reports, or else the one found here."""
        if self._store.outage is not None:
            return self._store.outage
        if self._silent_since is None:
            self._silent_since = int(time.time() * 1000)
        return Outage(self._silent_since, reason, repair)
