"""A leap of the clock is told from time that passed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast.daemon.clock_leaps import Leap, LeapWatch
from holdfast.store.opening import open_store

HOUR = 3_600_000
BEGAN = 1_800_000_000_000


class Clocks:
    """Both clocks, as a test sets them."""

    def __init__(self) -> None:
        self.steady = 5_000
        self.wall = BEGAN

    def passes(self, milliseconds: int) -> None:
        self.steady += milliseconds
        self.wall += milliseconds

    def watch(self) -> LeapWatch:
        return LeapWatch(lambda: self.wall, lambda: self.steady)


@pytest.mark.parametrize("leap", [30 * HOUR, -30 * HOUR, 10_000])
def test_the_store_goes_on_in_the_old_time_until_leases_were_carried_over(tmp_path: Path, leap: int) -> None:
    clocks = Clocks()
    watch = clocks.watch()

    async def run() -> None:
        store, _ = await open_store(tmp_path, clock=watch.now)
        try:
            await store.write(lambda tx: tx.run("INSERT INTO daemons VALUES ('one', :until)", until=tx.now() + 30_000))
            clocks.passes(2 * HOUR)
            assert (await watch.carry_over(store), watch.now()) == (None, BEGAN + 2 * HOUR), "time that passed"
            clocks.wall += leap
            clocks.passes(1_000)
            now = await store.read(lambda tx: tx.now())
            assert now == BEGAN + 2 * HOUR + 1_000
            assert await watch.carry_over(store) == Leap(now, now + leap)
            assert await store.read(lambda tx: tx.now()) == now + leap
            assert await watch.carry_over(store) is None
        finally:
            await store.close()

    asyncio.run(run())


def test_what_ntp_corrects_little_by_little_is_no_leap() -> None:
    clocks = Clocks()
    watch = clocks.watch()
    for _ in range(100):
        clocks.passes(60_000)
        clocks.wall += 400
        assert watch.now() == clocks.wall


def test_a_reading_that_was_held_up_between_the_clocks_is_no_leap() -> None:
    clocks = Clocks()
    held_up = iter([False, True, False, False])

    def wall() -> int:
        read = clocks.wall
        if next(held_up):
            clocks.passes(60_000)
        return read

    watch = LeapWatch(wall, lambda: clocks.steady)
    assert watch.now() == BEGAN
    assert watch.now() == BEGAN + 60_000
    assert watch.now() == clocks.wall
