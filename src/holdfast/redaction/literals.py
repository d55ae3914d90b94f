"""Finding many fixed strings in one pass. Pure, no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

KEYED = 3
"""Characters by which the strings are sorted."""


class Strings:
    """Many fixed strings, to see which of them a text holds."""

    def __init__(self, strings: Iterable[str]) -> None:
        """Sort the strings by their first characters."""
        every = sorted(set(strings))
        self._shorter = tuple(one for one in every if len(one) < KEYED)
        self._beginning: dict[str, list[str]] = {}
        for one in every:
            if len(one) >= KEYED:
                self._beginning.setdefault(one[:KEYED], []).append(one)

    def held_by(self, text: str) -> list[str]:
        """Return those that a text holds."""
        grams = {text[place : place + KEYED] for place in range(len(text) - KEYED + 1)}
        possible = [one for key in self._beginning.keys() & grams for one in self._beginning[key]]
        return [one for one in (*self._shorter, *possible) if one in text]


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
