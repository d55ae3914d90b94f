"""Recall: how much of what agents knew at their breaks they were told."""

from holdfast.briefing.figures import recalled
from holdfast.briefing.knowledge import KnownCount


def test_recall_sums_what_was_known_and_told_over_all_breaks() -> None:
    first = [KnownCount("changed", 2, 1), KnownCount("step", 1, 1)]
    assert recalled([first, [KnownCount("changed", 3, 3)], []]) == (
        KnownCount("changed", 5, 4),
        KnownCount("step", 1, 1),
    )
