"""Recall: how much of what agents knew at their breaks they were told."""

from dataclasses import replace

from holdfast.briefing.figures import recalled
from holdfast.briefing.knowledge import Knowledge, KnownCount
from holdfast.briefing.queries.breaks import Break


def test_recall_sums_what_was_known_and_told_over_all_breaks() -> None:
    knew = Knowledge("one", counts=(KnownCount("changed", 2, 1), KnownCount("step", 1, 1)))
    first = Break(1, "file:///shop", "two", "one", "crash", ("modified",), 0, None, "told", knew)
    second = replace(first, row_id=2, knew=replace(knew, counts=(KnownCount("changed", 3, 3),)))
    not_kept = replace(first, row_id=3, knew=None, told=None)
    assert recalled([first, second, not_kept]) == (KnownCount("changed", 5, 4), KnownCount("step", 1, 1))
