"""A line of a project's text that is too long is named, and its text is left as it is."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from holdfast.files.bounded_lines import MAX_LINE, LineTooLong, lines
from holdfast.protocol import memories
from holdfast.protocol.serena.memory_files import MEMORIES
from holdfast.protocol.serena.mirror import STATE_JSON, foreign_state

LONG = "a" * (MAX_LINE + 1)


def test_a_line_that_is_too_long_is_named() -> None:
    assert lines(f"{LONG[1:]}\nb", "x.md") == [LONG[1:], "b"]
    with pytest.raises(LineTooLong, match=r"x\.md, line 3, is longer than 65536 characters\. Break it into several"):
        lines(f"a\nb\n{LONG}\n", "x.md")


def test_a_memory_with_such_a_line_is_not_taken_for_none() -> None:
    with pytest.raises(LineTooLong, match="session-current-state, line 2"):
        memories.read_current_state(f"- **Session ID**: x\n| {LONG} |\n")


@pytest.mark.anyio
async def test_a_state_with_such_a_line_is_passed_over_with_a_notice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    memory = tmp_path / MEMORIES / f"{memories.CURRENT_STATE}.md"
    memory.parent.mkdir(parents=True)
    memory.write_text(f"- **Session ID**: x\n{LONG}\n")
    (tmp_path / STATE_JSON).parent.mkdir(parents=True)
    (tmp_path / STATE_JSON).write_text('{"session_id": "y"}')
    with caplog.at_level(logging.WARNING):
        found = await foreign_state(tmp_path)
    assert found is not None and found.session_id == "y"
    assert "line 2, is longer than" in caplog.text
