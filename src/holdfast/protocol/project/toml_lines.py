"""Finds the line of a key in a TOML text, which the standard library's parser does not report."""

from __future__ import annotations

import re

_HEADER = re.compile(r"\s*+\[(?P<keys>[^\[\]]++)\]\s*+(#.*)?$")
_ENTRY = re.compile(
    r"""\s*+(?P<keys>(?:[A-Za-z0-9_-]++|"[^"]*+"|'[^']*+')(?:\s*+\.\s*+(?:[A-Za-z0-9_-]++|"[^"]*+"|'[^']*+'))*+)\s*="""
)
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")


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


def _split(keys: str) -> tuple[str, ...]:
    return tuple(key.strip("\"'") for key in _KEY.findall(keys))
