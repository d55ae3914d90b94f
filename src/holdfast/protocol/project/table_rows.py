"""Splits rows of a markdown table as people write them: a pipe inside backticks does not end a cell."""

from __future__ import annotations

import re

HIDDEN = "\0"
"""Stands for a pipe in code. No row contains it: a markdown parser replaces it, and so does `cells`."""

_CODE = re.compile(r"(``.+?``|`[^`]+`)")
"""Splits a text so that every second part is code, with its backticks."""
_UNESCAPED_PIPE = re.compile(r"(?<!\\)\|")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def cells(row: str, expected: int) -> list[str]:
    """Split a row into cells. A markdown parser would split code at its pipes and drop the surplus cells."""
    row = row.replace(HIDDEN, "\ufffd").strip()
    parts = _CODE.split(row)
    parts[1::2] = [code.replace("\\|", "|").replace("|", HIDDEN) for code in parts[1::2]]
    aware = [cell.replace(HIDDEN, "|") for cell in _split("".join(parts))]
    plainly = _split(row)
    # An unpaired backtick may have swallowed a cell border.
    return plainly if len(aware) != expected == len(plainly) else aware


def plain(text: str) -> str:
    """Return the text without emphasis, backticks and escapes, on one line."""
    parts = _CODE.split(text)
    parts[::2] = map(_unmarked, parts[::2])
    parts[1::2] = [code.strip("`") for code in parts[1::2]]
    return " ".join("".join(parts).split())


def without_code(text: str) -> str:
    """Return the text outside backticks."""
    return " ".join(" ".join(map(_unmarked, _CODE.split(text)[::2])).split())


def _split(row: str) -> list[str]:
    parts = _UNESCAPED_PIPE.split(row)
    if row.startswith("|"):
        parts = parts[1:]
    if parts and row.endswith("|") and not parts[-1].strip():
        parts = parts[:-1]
    return [cell.strip() for cell in parts]


def _unmarked(text: str) -> str:
    return _ESCAPED.sub(r"\1", text.replace("**", ""))
