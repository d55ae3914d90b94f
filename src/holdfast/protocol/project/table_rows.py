"""Splits rows of a markdown table as people write them: a pipe inside backticks does not end a cell."""

from __future__ import annotations

import re
from collections.abc import Iterator

BORDER = "\0"
"""Separates cells. No row contains it: a markdown parser replaces it, and so does `cells`."""

_RUNS = re.compile(r"`+")
_UNESCAPED_PIPE = re.compile(r"(?<!\\)\|")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def cells(row: str, expected: int) -> list[str]:
    """Split a row into cells. A markdown parser would split code at its pipes and drop the surplus cells."""
    row = row.replace(BORDER, "\ufffd").strip()
    aware = _trimmed("".join(BORDER if part is None else part for part in _marked(row)).split(BORDER), row)
    if len(aware) == expected:
        return aware
    # An unpaired backtick may have swallowed a cell border.
    plainly = _trimmed(_UNESCAPED_PIPE.split(row), row)
    return plainly if len(plainly) == expected else aware


def plain(text: str) -> str:
    """Return the text without emphasis, backticks and escapes, on one line."""
    seen = "".join(part if ticks else _unmarked(part) for ticks, part in _pieces(text))
    return " ".join(seen.split())


def without_code(text: str) -> str:
    """Return the text outside backticks."""
    return " ".join(" ".join(_unmarked(part) for ticks, part in _pieces(text) if not ticks).split())


def _marked(row: str) -> Iterator[str | None]:
    """Yield the row in parts, with None for each border between cells."""
    for ticks, part in _pieces(row):
        if ticks:
            yield ticks + part.replace("\\|", "|") + ticks
            continue
        first, *others = _UNESCAPED_PIPE.split(part)
        yield first
        for other in others:
            yield None
            yield other


def _trimmed(parts: list[str], row: str) -> list[str]:
    if row.startswith("|"):
        parts = parts[1:]
    if parts and row.endswith("|") and not parts[-1].strip():
        parts = parts[:-1]
    return [cell.strip() for cell in parts]


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Split a text into plain parts and code spans with their backticks; an unpaired run of backticks is text."""
    runs = [(match.start(), match.end()) for match in _RUNS.finditer(text) if not _escaped(text, match.start())]
    done = 0
    following: dict[int, tuple[int, int]] = {}
    closings: list[tuple[int, int] | None] = []
    for start, end in reversed(runs):  # each run's counterpart, found in one pass
        closings.append(following.get(end - start))
        following[end - start] = (start, end)
    for (start, end), closing in zip(runs, reversed(closings), strict=True):
        if start < done or closing is None:
            continue
        yield "", text[done:start]
        yield text[start:end], text[end : closing[0]]
        done = closing[1]
    yield "", text[done:]


def _escaped(text: str, position: int) -> bool:
    first = position
    while first > 0 and text[first - 1] == "\\":
        first -= 1
    return (position - first) % 2 == 1


def _unmarked(text: str) -> str:
    return _ESCAPED.sub(r"\1", text.replace("**", ""))
