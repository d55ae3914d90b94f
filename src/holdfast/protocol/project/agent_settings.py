"""Finds the settings that a project brings for managed agents, which start without them until the owner trusts them."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.agents.project_settings import ProjectSettings
from holdfast.agents.registry import settings_of
from holdfast.protocol.worktree import Worktree, worktree_of


def agent_settings_at(directory: Path) -> tuple[Worktree | None, ProjectSettings | None]:
    """Return the worktree of a directory and its agent settings; None for both if it has none."""
    if has_no_agent_settings(directory):
        return None, None
    worktree = worktree_of(directory)
    try:
        if worktree is None or not worktree.path.samefile(directory):
            top = "another directory" if worktree is None else worktree.path
            return worktree, ProjectSettings(problem=f"they belong to {top}, which contains this directory.")
    except OSError as error:
        return worktree, ProjectSettings(problem=f"{directory} cannot be read ({error.strerror}).")
    return worktree, settings_of().of_project(worktree.path)


def has_no_agent_settings(directory: Path) -> bool:
    """Return whether no agent settings exist from a directory up to the top of its worktree."""
    worktree = worktree_of(directory)
    if worktree is None:
        return False
    here = Path(os.path.realpath(directory))
    between = [here, *(folder for folder in here.parents if folder.is_relative_to(worktree.path))]
    return not any(os.path.lexists(folder / name) for folder in between for name in settings_of().project_names)
