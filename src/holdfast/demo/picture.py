"""A thought session drawn as a tree, as wide as the terminal and in letters that it can show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LEAST_TEXT = 12
"""Columns of a thought that are always shown, however narrow the terminal is."""


@dataclass(frozen=True, slots=True)
class Letters:
    """What the lines of a tree are made of."""

    more: str
    last: str
    along: str
    cut: str


DRAWN = Letters("├─ ", "└─ ", "│  ", "…")
TYPED = Letters("|- ", "`- ", "|  ", "...")
"""For terminals that know nothing but ASCII."""


def letters_for(encoding: str | None) -> Letters:
    """The letters that an encoding can show."""
    try:
        "".join((DRAWN.more, DRAWN.last, DRAWN.along, DRAWN.cut)).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return TYPED
    return DRAWN


@dataclass(frozen=True, slots=True)
class _Node:
    text: str
    below: Sequence[_Node]


def drawn(session: Mapping[str, Any], width: int, letters: Letters = DRAWN) -> list[str]:
    """The lines of a session as `init load_context` gives it; a branch hangs below the thought it comes from."""
    title = str(session["session"].get("title") or "(untitled)")
    thoughts, branches = session["thoughts"], session.get("branches", [])
    origin = {branch["branchId"]: branch["fromThought"] for branch in branches}
    main = [_node(thought, thoughts, origin) for thought in thoughts if thought.get("branchId") not in origin]
    return [_cut(title, width, letters), *_lines(main, "", width, letters)]


def _node(thought: Mapping[str, Any], thoughts: Iterable[Mapping[str, Any]], origin: Mapping[str, int]) -> _Node:
    number = thought["thoughtNumber"]
    revised = f"(revises {thought['revisesThought']}) " if thought.get("revisesThought") else ""
    branches = [name for name, start in origin.items() if start == number]
    below = [_branch(name, thoughts, origin) for name in branches]
    return _Node(f"{number}  {revised}{' '.join(str(thought['thought']).split())}", below)


def _branch(name: str, thoughts: Iterable[Mapping[str, Any]], origin: Mapping[str, int]) -> _Node:
    members = [thought for thought in thoughts if thought.get("branchId") == name]
    return _Node(f"branch {name}", [_node(thought, thoughts, origin) for thought in members])


def _lines(nodes: Sequence[_Node], before: str, width: int, letters: Letters) -> Iterator[str]:
    for place, node in enumerate(nodes):
        is_last = place == len(nodes) - 1
        yield _cut(before + (letters.last if is_last else letters.more) + node.text, width, letters)
        yield from _lines(node.below, before + ("   " if is_last else letters.along), width, letters)


def _cut(line: str, width: int, letters: Letters) -> str:
    room = max(width, LEAST_TEXT)
    return line if len(line) <= room else line[: room - len(letters.cut)].rstrip() + letters.cut
