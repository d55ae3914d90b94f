"""Detects docs-only changes: markdown files whose code blocks are unchanged."""

from __future__ import annotations

from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MARKDOWN = frozenset({".md", ".markdown"})


def is_markdown(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in MARKDOWN


def code_blocks(text: str) -> tuple[tuple[str, str], ...]:
    """Return the fenced and indented code blocks of a markdown text in order, each with its language."""
    parser = _parser()
    blocks = parser.parse(text)
    deepest = parser.options["maxNesting"] - 1
    if any(block.level >= deepest for block in blocks):
        # The parser drops anything nested deeper: treat the whole text as code, so that none can hide there.
        return (("", text),)
    return tuple((block.info.strip(), block.content) for block in blocks if block.type in ("fence", "code_block"))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # imported late to keep the daemon's start fast

    return MarkdownIt("commonmark").disable("inline")  # inline content is not needed and slow to parse
