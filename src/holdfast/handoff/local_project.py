"""A project as it lies on this machine: what its rows and its transcripts are found by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.agents.registry import transcripts_of
from holdfast.errors import BadInput
from holdfast.identity.project import Root, RootSource, locate
from holdfast.protocol.worktree import Worktree, worktree_of
from holdfast.teams.team import Team


@dataclass(frozen=True, slots=True)
class ProjectPlace:
    """A project directory here."""

    path: Path
    root: Root
    worktree: Worktree
    teams: frozenset[str]
    """The teams that work in it."""
    elsewhere: frozenset[str]
    """The teams that work in other projects."""

    @property
    def folder(self) -> str:
        """What Claude Code calls the folder of its transcripts."""
        return transcripts_of().folder_name(self.path)


def project_place(directory: str, teams: Mapping[str, Team]) -> ProjectPlace:
    """The project in a directory, with the teams of the roster that work there."""
    path = Path(directory)
    worktree = worktree_of(path)
    if not path.is_absolute() or worktree is None:
        raise BadInput("project", f"{directory} is no directory here", recovery="Name the project's directory.")
    real = path.resolve()
    here = frozenset(name for name, team in teams.items() if team.project.resolve() == real)
    return ProjectPlace(real, locate(str(real), RootSource.ARGUMENT), worktree, here, frozenset(teams) - here)
