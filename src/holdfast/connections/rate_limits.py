"""Limits on failed attempts: per connection, and per origin."""

from __future__ import annotations

import math
import time
from functools import cached_property
from typing import TYPE_CHECKING

from holdfast.connections.model import Attempt

if TYPE_CHECKING:
    from limits import RateLimitItem
    from limits.strategies import MovingWindowRateLimiter

PER_SESSION = 10
PER_CALLER = 30
LOOPBACK = ("127.", "::1", "localhost", "relay:")


class AttemptLimits:
    """Limits failed attempts within a minute. On loopback all share an address, so the key stands for the caller."""

    def __init__(self, per_session: int = PER_SESSION, per_caller: int = PER_CALLER) -> None:
        self._session_limit = per_session
        self._caller_limit = per_caller

    def wait(self, session_id: str, attempt: Attempt) -> int | None:
        """Return how many seconds this caller must wait, or None if it may try."""
        waits = [
            math.ceil(max(1.0, self._limiter.get_window_stats(limit, *key).reset_time - time.time()))
            for limit, key in self._keys(session_id, attempt)
            if not self._limiter.test(limit, *key)
        ]
        return max(waits) if waits else None

    def failed(self, session_id: str, attempt: Attempt) -> None:
        for limit, key in self._keys(session_id, attempt):
            self._limiter.hit(limit, *key)

    # Imported at the first attempt, because a hook waits for the daemon's start.

    @cached_property
    def _limiter(self) -> MovingWindowRateLimiter:
        from limits.storage import MemoryStorage
        from limits.strategies import MovingWindowRateLimiter

        return MovingWindowRateLimiter(MemoryStorage())

    @cached_property
    def _items(self) -> tuple[RateLimitItem, RateLimitItem]:
        from limits import RateLimitItemPerMinute

        return RateLimitItemPerMinute(self._session_limit), RateLimitItemPerMinute(self._caller_limit)

    def _keys(self, session_id: str, attempt: Attempt) -> list[tuple[RateLimitItem, tuple[str, ...]]]:
        per_session, per_caller = self._items
        if attempt.address.startswith(LOOPBACK):
            # Local callers may share address and key, so failures are counted per connection.
            return [(per_session, ("session", attempt.principal or "-", session_id[:64]))]
        return [(per_session, ("session", session_id[:64])), (per_caller, ("address", attempt.address))]
