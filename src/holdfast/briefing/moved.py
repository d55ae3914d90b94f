"""Recognises a project without a remote that was moved, by its first commit, and offers its earlier work."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from holdfast.briefing.model import MAX_PATH_CHARS
from holdfast.briefing.session_directory import GIT_SECONDS
from holdfast.capability.briefing import Item, Rank
from holdfast.identity.project import Root, checkout_of, path_of
from holdfast.lazy_dataclass import dataclass
from holdfast.reasoning.queries import projects as project_queries
from holdfast.store import Store
from holdfast.text.quoting import named

UNKNOWN = ""
"""Stored as the first commit if git did not name it in time; git is not asked again."""


@dataclass(frozen=True, slots=True)
class FirstCommit:
    """The first commit of a repository."""

    id: str
    is_new: bool
    """Whether it is not in the store yet."""


async def first_commit(root: Root, known: str | None) -> FirstCommit | None:
    """Return the first commit of a checkout without a remote; None for any other, which is known by its remote.

    `known` is the one in the store."""
    path = path_of(root.uri)
    if path is None or root.key is None or not root.key.startswith("worktrees:"):
        return None
    if known is not None:
        return FirstCommit(known, is_new=False)
    return FirstCommit(await _ask_git(path) or UNKNOWN, is_new=True)


async def offer(store: Store, root: Root, commit: str) -> list[Item]:
    """Return the offer to move earlier work here, if exactly one project with this first commit is gone."""
    path = path_of(root.uri)
    if path is None or commit == UNKNOWN:
        return []
    others = await store.read(lambda tx: project_queries.roots_with_first_commit(tx, root, commit))
    paths = [old for one in others if (old := path_of(one)) is not None]
    gone = await asyncio.to_thread(lambda: [old for old in paths if not old.exists()])
    if len(gone) != 1:
        return []
    before = named(str(gone[0]), MAX_PATH_CHARS)
    text = (
        f"Earlier work of this repository is known under {before}, which is gone."
        f" If the project was moved, its user can run: holdfast move {before} {named(str(path), MAX_PATH_CHARS)}"
    )
    return [Item("moved", Rank.TASK, text)]


async def _ask_git(path: Path) -> str | None:
    from holdfast.git.state import Git, GitFault

    with contextlib.suppress(TimeoutError, GitFault):
        async with asyncio.timeout(GIT_SECONDS):
            checkout = await asyncio.to_thread(checkout_of, path)
            if checkout is not None:
                return await Git(checkout.top, timeout_s=GIT_SECONDS).first_commit()
    return None
