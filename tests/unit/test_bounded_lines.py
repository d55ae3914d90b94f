"""A line of a project's text that is too long is named, and its text is left as it is."""

from __future__ import annotations

import pytest

from holdfast.files.bounded_lines import MAX_LINE, LineTooLong, lines

LONG = "a" * (MAX_LINE + 1)


def test_a_line_that_is_too_long_is_named() -> None:
    assert lines(f"{LONG[1:]}\nb", "x.md") == [LONG[1:], "b"]
    with pytest.raises(LineTooLong, match=r"x\.md, line 3, is longer than 65536 characters\. Break it into several"):
        lines(f"a\nb\n{LONG}\n", "x.md")
