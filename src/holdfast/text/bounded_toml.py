"""Parses a project's TOML within limits that keep the time linear in its length.

The standard library's parser takes quadratic time in the number of parts of a dotted key.
"""

from __future__ import annotations

import re
from typing import Any

MAX_LINE = 64 * 1024
MAX_DOTS = 100
"""Dots in one line; a key with more parts nests deeper than any setting does."""


_AT = re.compile(r"\(at line (\d+), column \d+\)$")


class TomlFault(ValueError):
    """The text was rejected; the message says why."""

    def __init__(self, line: int | None, message: str) -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.line = line
        """Counted from 1; None if unknown."""
        self.message = message


def loads(text: str) -> dict[str, Any]:
    """Parse a TOML text. Raises TomlFault."""
    import tomllib  # imported late: most projects have no such file, and all wait for the daemon to start

    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MAX_LINE:
            raise TomlFault(number, f"The line is longer than {MAX_LINE} characters. Break it into several.")
        if line.count(".") > MAX_DOTS:
            raise TomlFault(number, f"The line has more than {MAX_DOTS} dots. Break it into several.")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _AT.search(str(error))
        at = int(match[1]) if match else text.count("\n", 0, len(text.rstrip())) + 1
        raise TomlFault(at, f"{str(error).split(' (at ')[0]}.") from error
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, thousands of brackets
        raise TomlFault(None, f"This cannot be read: {error}.") from error
