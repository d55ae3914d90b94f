"""Tables for a terminal of any width, with colour if wanted.

Outside text is escaped before it is measured, so that it can neither steer the terminal nor break a row.
"""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Collection, Sequence

from holdfast.text.terminal import one_line, write_own

GAP = "  "
BELOW = "    "
MIN_COLUMN = 8
MIN_LAST = 20
"""Columns that the last cell needs; if there are fewer, it goes below its row."""
BOLD, DIM, RED, YELLOW = "1", "2", "31", "33"


def show_table(
    rows: Sequence[Sequence[str]],
    *,
    whole: Collection[str] = (),
    below: Sequence[Sequence[str]] = (),
    colours: dict[str, str] | None = None,
) -> None:
    """Print rows in columns under the headings that come first.

    On a terminal they fit its width: the last column is cut at the edge, others are shortened, the widest first,
    except those whose headings are in `whole` because they are to be copied. Elsewhere nothing is cut. `below` has
    the lines that follow each row, `colours` a colour for the cells that have this text.
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    natural = [max(columns_of(row[column]) for row in cells) for column in range(len(cells[0]))]
    room = screen_width()
    widths = _fitting(natural, room, [heading in whole for heading in cells[0]])
    for number, row in enumerate(cells):
        shown = [_cut(cell, width) for cell, width in zip(row, widths, strict=False)]
        padded = [cell + " " * (width - columns_of(cell)) for cell, width in zip(shown, widths, strict=False)]
        padded[-1] = shown[-1]
        if number == 0:
            line = coloured(GAP.join(padded).rstrip(), BOLD)
        else:
            line = GAP.join(
                coloured(cell, (colours or {}).get(cell.rstrip())) if colours else cell for cell in padded
            ).rstrip()
        say_own(line)
        if len(widths) < len(row) and number > 0 and row[-1]:
            say_own(BELOW + _cut(row[-1], room - len(BELOW)))
        for text in below[number - 1] if number > 0 and below else ():
            say_own(BELOW + one_line(text))


def _fitting(natural: Sequence[int], room: int, keep: Sequence[bool]) -> list[int]:
    """Return the width of each column; without the last one if its cells must go below their rows."""
    *others, last = natural
    gaps = len(GAP) * len(others)
    for wanted in (last, min(last, MIN_LAST)):
        if sum(others) + gaps + wanted <= room:
            return [*others, room - sum(others) - gaps if wanted < last else last]
    shrunk = _shrunk(others, room - gaps - min(last, MIN_LAST), keep)
    if sum(shrunk) + gaps + min(last, MIN_LAST) <= room:
        return [*shrunk, room - sum(shrunk) - gaps]
    return _shrunk(others, room - gaps + len(GAP), keep)


def _shrunk(widths: Sequence[int], room: int, keep: Sequence[bool]) -> list[int]:
    """Return widths that fit in all, if possible: the widest shrinks first."""
    shrunk = list(widths)
    while sum(shrunk) > room:
        widest = max((number for number in range(len(shrunk)) if not keep[number]), key=shrunk.__getitem__, default=0)
        if keep[widest] or shrunk[widest] <= MIN_COLUMN:
            return shrunk
        shrunk[widest] -= 1
    return shrunk


def _cut(text: str, width: int) -> str:
    if columns_of(text) <= width:
        return text
    while text and columns_of(text) >= width:
        text = text[:-1]
    return f"{text.rstrip()}…"


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def screen_width() -> int:
    """Return the columns of the terminal; without one there is no limit."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize


def coloured(text: str, colour: str | None) -> str:
    """Return our own text, or one that was escaped, in a colour if standard output shows colours."""
    if colour is None or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{colour}m{text}\x1b[0m"


def say_own(text: str) -> None:
    """Print one line of our own, with its colours; outside text in it was escaped before."""
    encoding = sys.stdout.encoding or "utf-8"
    write_own(text.encode(encoding, "backslashreplace").decode(encoding) + "\n", sys.stdout)
