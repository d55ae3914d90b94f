"""The exam of the detector counts strictly: no part of a secret may be left."""

from __future__ import annotations

from tests.secrets_exam import examine, is_gone


def test_an_exam_names_what_was_missed_and_what_was_masked_in_vain() -> None:
    planted = "hunter2" + "hunter2"
    kinds = [
        {"kind": "found", "line": f"password={planted}", "secrets": [planted]},
        {"kind": "missed", "line": "we met at noon by the lake", "secrets": ["the lake"]},
    ]
    marks = examine({"kinds": kinds, "clean": ["all is well", f"password={planted}"]})
    assert [kind for kind, _ in marks.missed] == ["missed"]
    assert marks.recall == 0.5
    assert marks.alarms_per_thousand == 500


def test_a_part_of_a_secret_counts_as_missed() -> None:
    assert not is_gone("abcdefghij", "key=abcdefghij", "key=[redacted]efghij")
    assert is_gone("abcdefghij", "key=abcdefghij", "key=[redacted]fghij")
