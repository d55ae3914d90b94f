"""The store that the settings name, apart from the services on it."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.config import Settings
from holdfast.errors import StoreCorrupt
from holdfast.store import Clock, Store
from holdfast.store.opening import open_store
from holdfast.store.sqlite import system_clock


def clock_of(settings: Settings) -> Clock:
    """The clock in force: the system's, plus what a test adds."""
    return lambda: system_clock() + clock_offset(settings)


def clock_offset(settings: Settings) -> int:
    """Milliseconds that a test adds to the time."""
    if settings.test_clock is None:
        return 0
    try:
        return int(settings.test_clock.read_text())
    except FileNotFoundError:
        return 0


async def open_app_store(
    settings: Settings, on_corrupt: Callable[[StoreCorrupt], None] | None = None
) -> tuple[Store, list[str]]:
    """The store that the settings name, and what users must be told of it."""
    return await open_store(
        settings.home,
        settings.database_url,
        clock=clock_of(settings),
        clock_offset=lambda: clock_offset(settings),
        on_corrupt=on_corrupt,
    )
