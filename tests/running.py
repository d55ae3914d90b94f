"""How a run goes: in random order when asked, and with a table at its end of where the time went."""

from __future__ import annotations

import random
from collections import Counter

import pytest

SLOWEST = 10


class Timing:
    """Adds up what set-up, call and tear-down of each test took, over all workers."""

    def __init__(self) -> None:
        self.tests: Counter[str] = Counter()
        self.folders: Counter[str] = Counter()
        self.numbers: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folder = "/".join(report.nodeid.split("::")[0].split("/")[:2])
        self.tests[report.nodeid] += report.duration  # type: ignore[assignment]  # a Counter adds floats as well
        self.folders[folder] += report.duration  # type: ignore[assignment]
        if report.when == "call":
            self.numbers[folder] += 1

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if len(self.tests) <= SLOWEST:
            return
        terminalreporter.section("time by folder, all workers added")
        for folder, seconds in self.folders.most_common():
            terminalreporter.write_line(f"{seconds:8.1f} s  {self.numbers[folder]:5} tests  {folder}")
        terminalreporter.section(f"the {SLOWEST} slowest tests")
        for name, seconds in self.tests.most_common(SLOWEST):
            terminalreporter.write_line(f"{seconds:8.1f} s  {name}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--shuffle 7`, a random order that is the same for each 7, and `--without-postgres`."""
    parser.addoption(
        "--without-postgres", action="store_true", help="leave out the tests that need a PostgreSQL server"
    )
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in the random order of this seed")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out and shuffle as asked; every worker does it alike, because each has the same tests and the same seed."""
    if config.getoption("without_postgres"):
        left_out = [item for item in items if _needs_postgres(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    seed = config.getoption("shuffle")
    if seed is not None:
        random.Random(seed).shuffle(items)
    items.sort(key=lambda item: item.get_closest_marker("early") is None)


def _needs_postgres(item: pytest.Item) -> bool:
    parameters = getattr(item, "callspec", None)
    by_parameter = parameters is not None and "postgres" in parameters.params.values()
    return by_parameter or "postgres" in getattr(item, "fixturenames", ())


def pytest_configure(config: pytest.Config) -> None:
    """Only where the reports of all workers come together."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Timing(), "holdfast-timing")
