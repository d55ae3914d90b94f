"""Project directories in which a person has used an agent, from its transcripts: candidates for teams."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from holdfast.agents.registry import AGENTS, runnable
from holdfast.lazy_dataclass import dataclass
from holdfast.teams.team import name_for


@dataclass(frozen=True, slots=True)
class ProjectFolder:
    """A project without a team."""

    name: str
    """The name that a team there would get."""
    project: Path
    agent: str
    used_at: int
    """When its latest conversation changed, in milliseconds since the epoch."""


def project_folders(env: Mapping[str, str], teams: Mapping[str, Path]) -> list[ProjectFolder]:
    """Return the projects that are no team's, the last used first. `teams`: each with its project."""
    taken, known = set(teams), {os.path.realpath(project) for project in teams.values()}
    found = []
    for directory, agent, used_at in sorted(_used(env), key=lambda one: one[2], reverse=True):
        project = Path(os.path.realpath(directory))
        name = name_for(project, taken)
        if str(project) in known or name is None or not project.is_dir():
            continue
        taken.add(name)
        known.add(str(project))
        found.append(ProjectFolder(name, project, agent, used_at))
    return found


def _used(env: Mapping[str, str]) -> Collection[tuple[str, str, int]]:
    """Return each project's directory, its agent, and when it was last used."""
    used = []
    for name in runnable():
        settings, transcripts = AGENTS[name].settings, AGENTS[name].transcripts
        if settings is None or transcripts is None:
            continue
        config, seen = settings().config_directory(env), set[str]()
        for file in transcripts.found(config):
            folder = file.path.relative_to(transcripts.folder(config)).parts[0]
            if folder in seen:
                continue
            try:
                directory = transcripts.directory_of(file, {})
            except OSError:  # deleted meanwhile, or not readable: another file of the folder may tell
                continue
            seen.add(folder)
            used.append((directory, name, int(file.modified * 1000)))
    return [one for one in used if one[0]]
