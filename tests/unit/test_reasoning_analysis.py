"""An analysis says how a session went without quoting it."""

from __future__ import annotations

from holdfast.reasoning.analysis import analyze
from holdfast.reasoning.results import Step

MINUTE = 60_000


def test_an_empty_session_has_nothing_to_tell() -> None:
    assert analyze([]) == {"thoughts": {"total": 0}}


def test_counts_revisions_branches_and_pace_are_told() -> None:
    told = analyze(
        [
            Step(1, None, None, None, 10, 0),
            Step(2, None, None, None, 20, MINUTE),
            Step(3, "a", 1, None, 30, 2 * MINUTE),
            Step(4, "a/b", 3, None, 40, 3 * MINUTE),
            Step(5, None, None, 2, 50, 63 * MINUTE),
            Step(6, None, None, 2, 60, 64 * MINUTE),
        ]
    )
    assert told["thoughts"] == {
        "total": 6,
        "mainLine": 4,
        "onBranches": 2,
        "characters": 210,
        "medianCharacters": 35,
    }
    assert told["revisions"] == {"total": 2, "revisedThoughts": 1, "mostRevised": [{"thoughtNumber": 2, "times": 2}]}
    assert told["branches"] == {
        "total": 2,
        "deepest": 2,
        "shape": [
            {"branchId": "a", "fromThought": 1, "thoughtCount": 1, "depth": 1},
            {"branchId": "a/b", "fromThought": 3, "thoughtCount": 1, "depth": 2},
        ],
    }
    assert told["pace"] == {
        "first": "1970-01-01T00:00:00.000Z",
        "last": "1970-01-01T01:04:00.000Z",
        "breaks": 1,
        "longestGapSeconds": 3600,
        "medianGapSeconds": 60.0,
        "activeMinutes": 4.0,
    }
