"""Splits a project's texts into lines and rejects overlong ones, so that line parsers need no limit of their own."""

from __future__ import annotations

from holdfast.files.inside import UnreadableInside

MAX_LINE = 64 * 1024
"""Characters, the same as for a line of TOML."""


class LineTooLong(UnreadableInside):
    """The whole text is rejected: skipping one line could be mistaken for the end of a block."""


def lines(text: str, name: str) -> list[str]:
    """Return the lines of the text called `name`. Raises LineTooLong."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE:
            raise LineTooLong(f"{name}, line {number}, is longer than {MAX_LINE} characters. Break it into several.")
    return lines
