"""A project as it lies on this machine: what its rows and its transcripts are found by."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from holdfast.errors import BadInput
from holdfast.identity.project import Root, RootSource, locate
from holdfast.identity.worktree import Worktree, worktree_of
from holdfast.lazy_dataclass import dataclass
from holdfast.teams.team import Team


@dataclass(frozen=True, slots=True)
class LocalProject:
    """A project directory here."""

    path: Path
    root: Root
    worktree: Worktree
    teams: frozenset[str]
    """The teams that work in it."""
    elsewhere: frozenset[str]
    """The teams that work in other projects."""


def local_project(directory: str, teams: Iterable[Team]) -> LocalProject:
    """Return the project in a directory, with those of the teams that work there."""
    path = Path(directory)
    worktree = worktree_of(path)
    if not path.is_absolute() or worktree is None:
        raise BadInput("project", f"{directory} is no directory here", recovery="Name the project's directory.")
    real, configured = path.resolve(), list(teams)
    here = frozenset(team.name for team in configured if team.project.resolve() == real)
    elsewhere = frozenset(team.name for team in configured) - here
    return LocalProject(real, locate(str(real), RootSource.ARGUMENT), worktree, here, elsewhere)
