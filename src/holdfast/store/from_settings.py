"""Opens the store that the settings name, without the services on top of it."""

from __future__ import annotations

import time
from collections.abc import Callable

from holdfast.config import Settings
from holdfast.errors import StoreCorrupt
from holdfast.store import Clock, Store
from holdfast.store.opening import open_store
from holdfast.store.sqlite import system_clock


def clock_of(settings: Settings) -> Clock:
    """Return the wall clock: the system's, plus the offset that a test adds."""
    return lambda: system_clock() + clock_offset(settings)


def steady_clock_of(settings: Settings) -> Clock:
    """Return the monotonic clock in milliseconds, plus the time that a test lets pass."""
    return lambda: time.monotonic_ns() // 1_000_000 + _test_clock(settings)[0]


def clock_offset(settings: Settings) -> int:
    """Return the milliseconds that a test adds to the time."""
    return sum(_test_clock(settings))


def _test_clock(settings: Settings) -> tuple[int, int]:
    """Return the milliseconds that a test lets pass, and the further jump of the wall clock."""
    if settings.test_clock is None:
        return 0, 0
    try:
        passed, _, leapt = settings.test_clock.read_text().partition(" ")
    except FileNotFoundError:
        return 0, 0
    return int(passed), int(leapt or 0)


async def open_app_store(
    settings: Settings, on_corrupt: Callable[[StoreCorrupt], None] | None = None, clock: Clock | None = None
) -> tuple[Store, list[str]]:
    """Open the store that the settings name; returns it with notices for the user. `clock` is SQLite's."""
    return await open_store(
        settings.home,
        settings.database_url,
        clock=clock or clock_of(settings),
        clock_offset=lambda: clock_offset(settings),
        on_corrupt=on_corrupt,
    )
