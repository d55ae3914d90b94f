"""Leaps of the clock: a laptop that slept, or a clock that was set, must not end what was in force before.

Leases, and how long something may lie untouched, are measured by the wall clock, because they are shared and outlive a
daemon. In the time that the wall clock skipped, no lease could be renewed. So a daemon compares it with a
clock that only goes on while the machine runs, and after a leap gives back what was left before.

On SQLite, which one daemon has for itself, the store goes on in the old time until that is done. On PostgreSQL the time
is the server's, for all daemons; a leap is noticed within a second.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from holdfast.bridge.queries import queue as bridge
from holdfast.briefing.queries import agent_sessions as queries
from holdfast.connections.queries import connections
from holdfast.errors import HoldfastError
from holdfast.protocol import queries as protocol
from holdfast.store import Clock, Store, Tx, calls, leases
from holdfast.teams.queries import conversations as teams

TOLERATED_MS = 5_000
"""The shortest leap: leases are renewed with more room than this."""
SLOW_MS = 1_000
"""A reading that took longer than this says nothing about the two clocks."""
LONGEST_LEASE_MS = 30 * 60_000
"""The longest lease there is (bridge/hook_delivery.py). A leap extends no lease by more than that."""

LEASES = (
    connections.DAEMONS,
    teams.ASKS,
    teams.CONVERSATIONS,
    bridge.MESSAGES,
    leases.NAMED,
    queries.SESSIONS,
)
DEADLINES = (*((lease.table, lease.until) for lease in LEASES), ("permissions", "expires_at"))
"""Expiry times that a holder renews, by table and column."""

logger = logging.getLogger(__name__)


class Leap(NamedTuple):
    """The time as it would be without the leap, and as it is."""

    before: int
    now: int


class LeapWatch:
    """Compares the wall clock with a steady one."""

    def __init__(self, wall: Clock, steady: Clock) -> None:
        self._wall = wall
        self._steady = steady
        self._ahead: int | None = None
        self._leap: Leap | None = None

    def now(self) -> int:
        """Return the wall clock's time; after a leap, the time without it until all leases were extended."""
        while True:
            steady, wall = self._steady(), self._wall()
            if self._steady() - steady < SLOW_MS:
                return self._compare(wall, steady)

    async def carry_over(self, store: Store) -> Leap | None:
        """Notice a leap and give what was in force before it the time that it had left; the leap."""
        if store.engine == "postgres":
            steady = self._steady()
            try:
                wall = await store.read(lambda tx: tx.now())
            except HoldfastError:
                return None  # the server is away; those who need it say so
            if self._steady() - steady < SLOW_MS:
                self._compare(wall, steady)
        else:
            self.now()
        leap = self._leap
        if leap is not None:
            await store.write(lambda tx: carry_over(tx, leap))
            self._ahead = self._leap = None
            logger.warning("the clock leapt by %.1f h; leases were shifted", (leap.now - leap.before) / 3_600_000)
        return leap

    def _compare(self, wall: int, steady: int) -> int:
        expected = wall if self._ahead is None else steady + self._ahead
        if abs(wall - expected) <= TOLERATED_MS:
            self._ahead, self._leap = wall - steady, None
            return wall
        self._leap = Leap(expected, wall)
        return expected


def carry_over(tx: Tx, leap: Leap) -> None:
    """Give whatever was in force before a leap the time that it had left; safe when several daemons do it."""
    forward = leap.now > leap.before
    # A clock that was set back by less only makes leases longer by less.
    if forward or leap.before - leap.now > LONGEST_LEASE_MS:
        for table, column in DEADLINES:
            leases.carry_over(tx, table, column, leap.before, leap.now, LONGEST_LEASE_MS)
    protocol.carry_over(tx, leap.before, leap.now)
    if forward:  # otherwise the reply for a call that is repeated after the leap would be dropped first
        calls.carry_over(tx, leap.before, leap.now)
