"""Whether a change touches nothing but documentation: markdown files whose code blocks stay as they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from holdfast.protocol.checks.findings import shown

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MARKDOWN = frozenset({".md", ".markdown"})


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file before and after; None where it was not there."""

    path: str
    before: str | None
    after: str | None


def is_markdown(path: str) -> bool:
    """Whether a path names a markdown file."""
    return PurePosixPath(path).suffix.lower() in MARKDOWN


def more_than_docs(changes: Iterable[ChangedFile]) -> str | None:
    """Why a change is more than documentation; None where it is nothing else."""
    for change in changes:
        if not is_markdown(change.path):
            return f"{shown(change.path)} is not markdown"
        if code_in(change.before or "") != code_in(change.after or ""):
            return f"{shown(change.path)} has other code blocks than before"
    return None


def code_in(text: str) -> tuple[tuple[str, str], ...]:
    """The fenced and indented code blocks of a markdown text in order, each with its language."""
    parser = _parser()
    blocks = parser.parse(text)
    deepest = parser.options["maxNesting"] - 1
    if any(block.level >= deepest for block in blocks):
        # What is nested deeper is not in the tree: the whole text counts as code, so that none hides there.
        return (("", text),)
    return tuple((block.info.strip(), block.content) for block in blocks if block.type in ("fence", "code_block"))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # late: the daemon starts without it

    return MarkdownIt("commonmark").disable("inline")  # what is in a paragraph is not asked for, and can cost much
