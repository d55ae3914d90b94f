"""Finds many fixed strings in one pass. Pure, no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

PREFIX_CHARS = 3
"""Length of the prefixes by which the strings are indexed."""


class Strings:
    """A set of fixed strings that can be searched for at once."""

    def __init__(self, strings: Iterable[str]) -> None:
        """Index the strings by their first characters."""
        every = sorted(set(strings))
        self._shorter = tuple(one for one in every if len(one) < PREFIX_CHARS)
        self._beginning: dict[str, list[str]] = {}
        for one in every:
            if len(one) >= PREFIX_CHARS:
                self._beginning.setdefault(one[:PREFIX_CHARS], []).append(one)

    def held_by(self, text: str) -> list[str]:
        """Return those that occur in a text."""
        grams = {text[place : place + PREFIX_CHARS] for place in range(len(text) - PREFIX_CHARS + 1)}
        possible = [one for key in self._beginning.keys() & grams for one in self._beginning[key]]
        return [one for one in (*self._shorter, *possible) if one in text]


def one_of(literals: Iterable[str]) -> str:
    """Return a regular expression for the longest of some strings, as a trie, so that each character is read once."""
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
    """Yield the positions of a string in a text."""
    place = text.find(literal)
    while place >= 0:
        yield place
        place = text.find(literal, place + 1)


def shortest(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words that contain none of the others: a text with any of the words contains one of these."""
    kept: list[str] = []
    for word in sorted(words, key=len):
        if not any(one in word for one in kept):
            kept.append(word)
    return tuple(kept)
