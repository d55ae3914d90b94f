"""Where a key stands in a TOML text; the standard library's reader does not say."""

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
    """The line (from 1) of a key, else of the table nearest to it, else None."""
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


def line_of_error(text: str, error: tomllib.TOMLDecodeError) -> int:
    """The line (from 1) at which a text stopped being TOML."""
    found = _AT.search(str(error))
    return int(found[1]) if found else text.count("\n", 0, len(text.rstrip())) + 1


def reason_of(error: tomllib.TOMLDecodeError) -> str:
    """What is wrong with it, without the place."""
    return str(error).split(" (at ")[0]


def _split(keys: str) -> tuple[str, ...]:
    return tuple(key.strip("\"'") for key in _KEY.findall(keys))
