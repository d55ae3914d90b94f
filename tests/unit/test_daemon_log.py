"""The daemon's log: repeated warnings are told less and less often, and with how often they came."""

from __future__ import annotations

import logging

import pytest

from holdfast.daemon.log import FORGOTTEN_AFTER_S, KINDS_KEPT, LONGEST_PAUSE_S, Repeats

DAY_S = 24 * 3600


class Log:
    """A log whose time passes as the test says."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.lines: list[str] = []
        self._repeats = Repeats(lambda: self.now)
        self._formatter = logging.Formatter("%(levelname)s %(message)s")

    def write(self, message: str, *args: object, level: int = logging.WARNING, error: Exception | None = None) -> None:
        trace = (type(error), error, error.__traceback__) if error is not None else None
        record = logging.LogRecord("holdfast.loop", level, __file__, 1, message, args, trace)
        shown = self._repeats.shown(record)
        if shown is not None:
            self.lines.append(self._formatter.format(shown))


def _raised(text: str) -> Exception:
    try:
        raise ValueError(text)
    except ValueError as error:
        return error


def test_a_database_that_is_away_for_a_day_costs_a_few_lines() -> None:
    log, came = Log(), 0
    begin = log.now
    while log.now < begin + DAY_S:
        log.write("background loop %r failed; again in %.0f s", "flush", came % 60, error=_raised("no route"))
        came += 1
        log.now += 5
    assert "Traceback" in log.lines[0]
    assert len(log.lines) < 40
    assert not any("Traceback" in line for line in log.lines[1:])
    counted = sum(int(line.partition("(and ")[2].split()[0]) + 1 for line in log.lines[1:]) + 1
    assert came - counted < LONGEST_PAUSE_S / 5, "but for those since the last line all are counted"


def test_the_second_comes_after_a_minute_and_says_how_many_were_left_out() -> None:
    log = Log()
    for _ in range(7):
        log.write("Lost the database")
        log.now += 10
    assert log.lines == ["WARNING Lost the database", "WARNING Lost the database (and 5 times more in the last 1 min)"]


def test_what_differs_is_not_taken_for_the_same() -> None:
    log = Log()
    log.write("Lost %s", "the database")
    log.write("Lost %s", "the socket")
    log.write("Failed", error=_raised("one"))
    log.write("Failed", error=_raised("another"))
    log.write("Lost %s", "the database", level=logging.ERROR)
    assert len(log.lines) == 5


def test_what_comes_again_after_a_long_time_is_told_as_new() -> None:
    log = Log()
    log.write("Failed", error=_raised("one"))
    log.now += FORGOTTEN_AFTER_S + 1
    log.write("Failed", error=_raised("one"))
    assert ["Traceback" in line for line in log.lines] == [True, True]


def test_information_is_never_left_out() -> None:
    log = Log()
    for _ in range(3):
        log.write("started", level=logging.INFO)
    assert len(log.lines) == 3


@pytest.mark.parametrize("kinds", [KINDS_KEPT * 3])
def test_ever_new_warnings_do_not_fill_the_memory(kinds: int) -> None:
    log = Log()
    for number in range(kinds):
        log.write("Failed for " + "x" * number)
    assert len(log.lines) == kinds
    assert len(log._repeats._kinds) == KINDS_KEPT
