"""A project that was moved and has no remote: known again by its first commit, and offered where it is now."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path

from holdfast.briefing.session_directory import GIT_SECONDS
from holdfast.capability.briefing import Item, Rank
from holdfast.identity.project import Root, checkout_of, path_of
from holdfast.reasoning.queries import projects as project_queries
from holdfast.store import Store
from holdfast.text.quoting import named

UNKNOWN = ""
"""The first commit of a repository that git did not name in time; it is not asked again."""
LONGEST_PATH = 200


@dataclass(frozen=True, slots=True)
class FirstCommit:
    """The first commit of a repository."""

    id: str
    is_new: bool
    """It is not in the store yet."""


async def first_commit(store: Store, root: Root) -> FirstCommit | None:
    """The first commit of a checkout without a remote; None for any other, which its remote finds."""
    path = path_of(root.uri)
    if path is None or root.key is None or not root.key.startswith("worktrees:"):
        return None
    known = await store.read(lambda tx: project_queries.first_commit(tx, root))
    if known is not None:
        return FirstCommit(known, is_new=False)
    found = None
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GIT_SECONDS):
            found = await _ask_git(path)
    return FirstCommit(found or UNKNOWN, is_new=True)


async def offer(store: Store, root: Root, commit: str) -> list[Item]:
    """The place from which a project was moved here: the only one with the same first commit, if it is gone."""
    path = path_of(root.uri)
    if path is None or commit == UNKNOWN:
        return []
    others = await store.read(lambda tx: project_queries.roots_with_first_commit(tx, root, commit))
    old = [one for one in others if (place := path_of(one)) is not None and not await _is_there(place)]
    if len(old) != 1:
        return []
    before = named(str(path_of(old[0])), LONGEST_PATH)
    text = (
        f"Earlier work of this repository is known under {before}, which is gone."
        f" If the project was moved, its user can run: holdfast move {before} {named(str(path), LONGEST_PATH)}"
    )
    return [Item("moved", Rank.TASK, text)]


async def _is_there(path: Path) -> bool:
    return await asyncio.to_thread(path.exists)


async def _ask_git(path: Path) -> str | None:
    from holdfast.git.state import Git, GitFault

    checkout = await asyncio.to_thread(checkout_of, path)
    if checkout is None:
        return None
    try:
        return await Git(checkout.top, timeout_s=GIT_SECONDS).first_commit()
    except GitFault:
        return None
