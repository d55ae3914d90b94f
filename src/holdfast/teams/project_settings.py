"""The settings that a project brings for managed agents, which start without them until the owner trusts them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path

from holdfast.agents.project_settings import ProjectSettings
from holdfast.agents.registry import settings_of
from holdfast.files.errors import explain
from holdfast.files.in_time import in_time
from holdfast.identity.worktree import Worktree, worktree_of

Trusted = Callable[[str], Awaitable[tuple[str | None, str | None]]]
"""Returns the digests that the owner trusts in a worktree: of its protocol, and of its agent settings."""


async def settings_off(directory: Path, trusted: Trusted) -> str | None:
    """Return why a managed agent may not use its project's agent settings, and what to do; None if it may.

    It may if they are trusted as they are now, or if there are none. Those of a directory below the top of its
    worktree are not compared, so they are never used.
    """
    try:
        worktree, settings = await in_time(agent_settings_at, directory)
    except OSError as error:
        return f"The project's settings are off because they cannot be read: {explain(error)}"
    if settings is None:
        return None
    if worktree is None or settings.problem is not None:
        return f"The project's settings are off because they cannot be trusted: {settings.problem}"
    _, digest = await trusted(worktree.root)
    if digest == settings.digest:
        return None
    why = "they changed since they were trusted" if digest else "they are not trusted yet"
    return f"The project's settings are off: {why}. `holdfast trust {shlex.quote(str(directory))}` shows them."


def agent_settings_at(directory: Path) -> tuple[Worktree | None, ProjectSettings | None]:
    """Return the worktree of a directory and its agent settings; None for both if it has none."""
    if _has_none(directory):
        return None, None
    worktree = worktree_of(directory)
    try:
        if worktree is None or not worktree.path.samefile(directory):
            top = "another directory" if worktree is None else worktree.path
            return worktree, ProjectSettings(problem=f"they belong to {top}, which contains this directory.")
    except OSError as error:
        return worktree, ProjectSettings(problem=f"{directory} cannot be read ({error.strerror}).")
    return worktree, settings_of().of_project(worktree.path)


def _has_none(directory: Path) -> bool:
    """Return whether no agent settings exist from a directory up to the top of its worktree.

    Every ask of a team waits for this, so it makes neither a `Path` of each folder nor a `Worktree`.
    """
    here = os.path.realpath(directory)
    if not os.path.isdir(here):  # noqa: PTH112
        return False
    between = [here]
    while not _exists(f"{between[-1]}/.git"):
        between.append(os.path.dirname(between[-1]))  # noqa: PTH120
        if between[-1] == between[-2]:
            between = [here]  # without a repository only the directory itself counts
            break
    return not any(os.path.lexists(f"{folder}/{name}") for folder in between for name in settings_of().project_names)


def _exists(path: str) -> bool:
    try:
        os.stat(path)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
