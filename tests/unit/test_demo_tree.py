"""The tree of a session: every thought in its place, in any width, with any tree lines."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.demo.tree import ASCII, UNICODE, drawn, tree_lines_for


def thought(number: int, text: str, **more: Any) -> dict[str, Any]:
    """A thought as `init load_context` gives it."""
    return {"thoughtNumber": number, "thought": text, **more}


SESSION: dict[str, Any] = {
    "session": {"title": "Why is it slow?"},
    "thoughts": [
        thought(1, "Measure first."),
        thought(2, "It is the lock."),
        thought(3, "Take it later.", branchId="later", branchFromThought=2),
        thought(4, "Or not\nat all.", branchId="none", branchFromThought=3),
        thought(5, "Measured again.", revisesThought=1),
    ],
    "branches": [{"branchId": "later", "fromThought": 2}, {"branchId": "none", "fromThought": 3}],
}


def test_a_branch_hangs_below_the_thought_it_comes_from() -> None:
    assert drawn(SESSION, 80) == [
        "Why is it slow?",
        "├─ 1  Measure first.",
        "├─ 2  It is the lock.",
        "│  └─ branch later",
        "│     └─ 3  Take it later.",
        "│        └─ branch none",
        "│           └─ 4  Or not at all.",
        "└─ 5  (revises 1) Measured again.",
    ]


def test_a_terminal_that_knows_only_ascii_gets_ascii() -> None:
    lines = drawn(SESSION, 80, tree_lines_for("ascii"))
    assert "\n".join(lines).isascii()
    assert lines[1] == "|- 1  Measure first." and lines[-1].startswith("`- 5")


@pytest.mark.parametrize(
    ("encoding", "tree_lines"), [("utf-8", UNICODE), ("latin-1", ASCII), (None, ASCII), ("odd", ASCII)]
)
def test_the_letters_are_those_that_can_be_shown(encoding: str | None, tree_lines: object) -> None:
    assert tree_lines_for(encoding) is tree_lines


@pytest.mark.parametrize("width", [12, 20, 33])
@pytest.mark.parametrize("tree_lines", [UNICODE, ASCII])
def test_no_line_is_wider_than_the_terminal(width: int, tree_lines: Any) -> None:
    lines = drawn(SESSION, width, tree_lines)
    assert len(lines) == 8
    assert max(map(len, lines)) <= width


def test_a_session_without_a_title_is_drawn_too() -> None:
    assert drawn({"session": {}, "thoughts": []}, 80) == ["(untitled)"]
