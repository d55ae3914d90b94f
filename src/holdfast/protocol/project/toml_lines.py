"""Finds the line of a key in a TOML text, which the standard library's parser does not report."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tomllib

_HEADER = re.compile(r"\s*+\[(?P<keys>[^\[\]]++)\]\s*+(#.*)?$")
_ENTRY = re.compile(
    r"""\s*+(?P<keys>(?:[A-Za-z0-9_-]++|"[^"]*+"|'[^']*+')(?:\s*+\.\s*+(?:[A-Za-z0-9_-]++|"[^"]*+"|'[^']*+'))*+)\s*="""
)
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")
_AT = re.compile(r"\(at line (\d+), column \d+\)$")


def line_of(text: str, *keys: str) -> int | None:
    """Return the line (from 1) of a key, otherwise of its nearest table, otherwise None."""
    best: tuple[int, int] | None = None
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), 1):
        if header := _HEADER.match(line):
            table = _split(header["keys"])
            found = table
        elif entry := _ENTRY.match(line):
            found = (*table, *_split(entry["keys"]))
        else:
            continue
        if found == keys:
            return number
        if found == keys[: len(found)] and (best is None or len(found) > best[0]):
            best = (len(found), number)
    return None if best is None else best[1]


def located(text: str, error: tomllib.TOMLDecodeError) -> tuple[int, str]:
    """Return the line (from 1) of a TOML error, and its message without the position."""
    match = _AT.search(str(error))
    line = int(match[1]) if match else text.count("\n", 0, len(text.rstrip())) + 1
    return line, str(error).split(" (at ")[0]


def _split(keys: str) -> tuple[str, ...]:
    return tuple(key.strip("\"'") for key in _KEY.findall(keys))
