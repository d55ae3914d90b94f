"""Which projects the first screen shows, when there are many."""

from __future__ import annotations

import pytest

from holdfast.dashboard.activity import MOST_QUIET, MOST_ROWS, WAITS, ProjectRow, first_rows


def row(state: str, last_at: int) -> ProjectRow:
    return ProjectRow(f"{state} {last_at}", "", "", "", "", state, "", None, last_at)


@pytest.mark.parametrize(
    ("busy", "quiet", "shown"),
    [(0, 3, 3), (2, 100, MOST_QUIET), (30, 100, 30), (100, 100, MOST_ROWS), (0, 0, 0)],
)
def test_busy_projects_come_first_and_quiet_ones_fill_the_rest(busy: int, quiet: int, shown: int) -> None:
    working = [row(WAITS if number % 2 else "at work", number) for number in range(busy)]
    rows = first_rows([*(row("quiet", 1_000 + number) for number in range(quiet)), *working])
    assert len(rows) == shown
    first = min(busy, shown)
    assert [one.last_at for one in rows[:first]] == list(range(busy - 1, busy - 1 - first, -1))
    assert all(one.state == "quiet" for one in rows[first:])
