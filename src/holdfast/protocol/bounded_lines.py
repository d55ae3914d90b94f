"""Lines of a project's texts, none longer than people write: what reads them need not fear what it does with a line."""

from __future__ import annotations

from holdfast.protocol.inside import UnreadableInside

MAX_LINE = 64 * 1024
"""Characters, as of a line of its TOML."""


class LineTooLong(UnreadableInside):
    """A text that is left as it is, unread: passing over one line of it could be taken for its end."""


def lines(text: str, name: str) -> list[str]:
    """The lines of the text that is called `name`. Raises LineTooLong."""
    found = text.splitlines()
    for number, line in enumerate(found, 1):
        if len(line) > MAX_LINE:
            raise LineTooLong(f"{name}, line {number}, is longer than {MAX_LINE} characters. Break it into several.")
    return found
