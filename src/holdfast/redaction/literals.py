"""Finding many fixed strings in one pass. Pure, no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator


def one_of(literals: Iterable[str]) -> str:
    """A regular expression for the longest of some strings, written as a tree so that each character is read once."""
    tails: dict[str, list[str]] = {}
    ends = False
    for literal in literals:
        if literal:
            tails.setdefault(literal[0], []).append(literal[1:])
        else:
            ends = True
    if not tails:
        return ""
    branches = [re.escape(head) + one_of(rest) for head, rest in sorted(tails.items())]
    joined = branches[0] if len(branches) == 1 and not ends else f"(?:{'|'.join(branches)})"
    return f"{joined}?" if ends else joined


def places(text: str, literal: str) -> Iterator[int]:
    """Where a text holds a string."""
    place = text.find(literal)
    while place >= 0:
        yield place
        place = text.find(literal, place + 1)
