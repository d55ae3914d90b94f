"""Finding many fixed strings in one pass. Pure, no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

SHORT = 160
"""Characters of a text in which looking at each place once is quicker than searching it for each string."""
KEYED = 3
"""Characters by which the strings are sorted."""


class Strings:
    """Many fixed strings, to see which of them a text holds."""

    def __init__(self, strings: Iterable[str]) -> None:
        """Sort the strings by their first characters."""
        self._all = tuple(sorted(set(strings)))
        self._shorter = tuple(one for one in self._all if len(one) < KEYED)
        self._beginning: dict[str, list[str]] = {}
        for one in self._all:
            if len(one) >= KEYED:
                self._beginning.setdefault(one[:KEYED], []).append(one)

    def held_by(self, text: str) -> list[str]:
        """Return those that a text holds; one may be named twice."""
        if len(text) > SHORT:
            return [one for one in self._all if one in text]
        held = [one for one in self._shorter if one in text]
        beginning = self._beginning
        for place in range(len(text) - KEYED + 1):
            key = text[place : place + KEYED]
            if key in beginning:
                held += [one for one in beginning[key] if text.startswith(one, place)]
        return held


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


def shortest(words: Iterable[str]) -> tuple[str, ...]:
    """Those of some words that hold none of the others: a text that holds any word holds one of these."""
    kept: list[str] = []
    for word in sorted(words, key=len):
        if not any(one in word for one in kept):
            kept.append(word)
    return tuple(kept)
