"""Detects docs-only changes: markdown files whose code blocks are unchanged."""

from __future__ import annotations

import asyncio
import stat
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from holdfast.files.in_time import in_time
from holdfast.files.inside import UnreadableInside, read_inside
from holdfast.git.state import Git, GitFault
from holdfast.protocol.checks.findings import shown
from holdfast.protocol.runs import Scene

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MARKDOWN = frozenset({".md", ".markdown"})
MAX_MARKDOWN_BYTES = 1024 * 1024
MAX_DOCUMENTS = 500


async def why_not_docs_only(scene: Scene) -> str | None:
    """Return why the change of a run is not docs-only; None if it is."""
    git = Git(scene.worktree)
    start = scene.run.starting_commit
    try:
        changed = await git.changed_since(start)
        if other := await asyncio.to_thread(_first_other, scene.worktree, changed):
            return f"{shown(other)} is not a markdown file"
        if len(changed) > MAX_DOCUMENTS:
            return f"{len(changed)} files were changed; at most {MAX_DOCUMENTS} are compared"
        for path in changed:
            before = None if start is None else await git.show(start, path)
            after = await in_time(read_inside, scene.worktree, path, MAX_MARKDOWN_BYTES)
            if len(before or b"") > MAX_MARKDOWN_BYTES:
                return f"{shown(path)} is longer than {MAX_MARKDOWN_BYTES} bytes"
            # Different bytes must compare as different, even if they are not valid text.
            texts = [(content or b"").decode("utf-8", "surrogateescape") for content in (before, after)]
            blocks = [await asyncio.to_thread(code_blocks, text) for text in texts]
            if blocks[0] != blocks[1]:
                return f"{shown(path)} has changed code blocks"
    except (GitFault, UnreadableInside) as failure:
        return str(failure).rstrip(".")
    return None


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


def mode(path: Path) -> int | None:
    """Return what is at a path: a file, a link and so on; None if nothing is."""
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _first_other(worktree: Path, paths: list[str]) -> str | None:
    """Return the first path that is no markdown, or neither a regular file nor deleted."""
    others = (path for path in paths if not is_markdown(path) or mode(worktree / path) not in (stat.S_IFREG, None))
    return next(others, None)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # imported late to keep the daemon's start fast

    return MarkdownIt("commonmark").disable("inline")  # inline content is not needed and slow to parse
