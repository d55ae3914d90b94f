"""Draws a reasoning session as a tree that fits the terminal's width and encoding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from holdfast.lazy_dataclass import dataclass
from holdfast.text import clipped

MIN_TEXT_WIDTH = 12
"""Columns of a thought that are always shown, however narrow the terminal is."""


@dataclass(frozen=True, slots=True)
class TreeLines:
    """The characters that a tree is drawn with."""

    more: str
    last: str
    along: str
    cut: str


UNICODE = TreeLines("├─ ", "└─ ", "│  ", "…")
ASCII = TreeLines("|- ", "`- ", "|  ", "...")
"""For terminals that can only show ASCII."""


def tree_lines_for(encoding: str | None) -> TreeLines:
    """Return the tree lines that an encoding can show."""
    try:
        "".join((UNICODE.more, UNICODE.last, UNICODE.along, UNICODE.cut)).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


_Node = tuple[str, "list[_Node]"]
"""A line of the tree, and the nodes below it."""


def drawn(session: Mapping[str, Any], width: int, tree_lines: TreeLines = UNICODE) -> list[str]:
    """Draw a session as `init load_context` returns it; a branch is drawn below the thought it starts from."""
    title = str(session["session"].get("title") or "(untitled)")
    thoughts, branches = session["thoughts"], session.get("branches", [])
    origin = {branch["branchId"]: branch["fromThought"] for branch in branches}
    main = [_node(thought, thoughts, origin) for thought in thoughts if thought.get("branchId") not in origin]
    return [_cut(title, width, tree_lines), *_lines(main, "", width, tree_lines)]


def _node(thought: Mapping[str, Any], thoughts: Iterable[Mapping[str, Any]], origin: Mapping[str, int]) -> _Node:
    number = thought["thoughtNumber"]
    revised = f"(revises {thought['revisesThought']}) " if thought.get("revisesThought") else ""
    branches = [name for name, start in origin.items() if start == number]
    below = [_branch(name, thoughts, origin) for name in branches]
    return f"{number}  {revised}{' '.join(str(thought['thought']).split())}", below


def _branch(name: str, thoughts: Iterable[Mapping[str, Any]], origin: Mapping[str, int]) -> _Node:
    members = [thought for thought in thoughts if thought.get("branchId") == name]
    return f"branch {name}", [_node(thought, thoughts, origin) for thought in members]


def _lines(nodes: Sequence[_Node], before: str, width: int, tree_lines: TreeLines) -> Iterator[str]:
    for number, (text, below) in enumerate(nodes, 1):
        is_last = number == len(nodes)
        yield _cut(before + (tree_lines.last if is_last else tree_lines.more) + text, width, tree_lines)
        yield from _lines(below, before + ("   " if is_last else tree_lines.along), width, tree_lines)


def _cut(line: str, width: int, tree_lines: TreeLines) -> str:
    return clipped(line, max(width, MIN_TEXT_WIDTH), tree_lines.cut)
