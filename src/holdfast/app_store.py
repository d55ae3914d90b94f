"""The store that the settings name, apart from the services on it."""

from __future__ import annotations

import time
from collections.abc import Callable

from holdfast.config import Settings
from holdfast.errors import StoreCorrupt
from holdfast.store import Clock, Store
from holdfast.store.opening import open_store
from holdfast.store.sqlite import system_clock


def clock_of(settings: Settings) -> Clock:
    """The clock in force: the system's, plus what a test adds."""
    return lambda: system_clock() + clock_offset(settings)


def steady_clock_of(settings: Settings) -> Clock:
    """Milliseconds that pass while the machine runs, plus what a test lets pass."""
    return lambda: time.monotonic_ns() // 1_000_000 + _test_clock(settings)[0]


def clock_offset(settings: Settings) -> int:
    """Milliseconds that a test adds to the time."""
    return sum(_test_clock(settings))


def _test_clock(settings: Settings) -> tuple[int, int]:
    """The milliseconds that a test lets pass, and those by which it lets the wall clock leap besides."""
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
    """The store that the settings name, and what users must be told of it; `clock` is SQLite's."""
    return await open_store(
        settings.home,
        settings.database_url,
        clock=clock or clock_of(settings),
        clock_offset=lambda: clock_offset(settings),
        on_corrupt=on_corrupt,
    )
