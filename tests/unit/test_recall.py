"""How much of what an agent knew at a break stood in what it was told."""

from __future__ import annotations

from holdfast.briefing.figures import Recalled, recalled
from holdfast.briefing.knowledge import Knowledge, KnownFile, KnownStep
from holdfast.briefing.queries.breaks import Break


def test_recall_counts_what_was_told_word_for_word_and_nothing_else() -> None:
    knew = Knowledge(
        "s1",
        request="Mend the charge",
        changed=(KnownFile("src/charge.py", 3, 1), KnownFile("src/bank.py", 1, 2)),
        read=(KnownFile("README.md", 1, 1),),
        steps=(KnownStep("read the code", "completed"), KnownStep("test a slow bank", "pending")),
    )
    told = "Asked: Mend the charge. Changed src/charge.py. To do: test a slow bank."
    whole = Break(1, "r", "s2", "s1", "crash", ("request", "todos"), 5, None, told, knew)
    not_kept = Break(2, "r", "s2", "s1", "crash", ("request",), 5, None)
    assert recalled([whole, not_kept]) == (
        Recalled("task", 1, 1),
        Recalled("changed", 2, 1),
        Recalled("steps", 1, 1),
        Recalled("read", 1, 0),
    )
    assert recalled([]) == ()
