"""`holdfast bridge init`: the hooks through which a project's live agent gets its messages."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from holdfast.cli import hook_settings
from holdfast.cli.common import add_home, settings_of
from holdfast.config import Settings
from holdfast.errors import BadInput
from holdfast.teams.config_file import TeamsFile
from holdfast.teams.team import Delivery, Team
from holdfast.text.terminal import say


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    init = verbs.add_parser("init", help="install the hooks that bring messages to a project's live agent")
    init.add_argument("directory", metavar="DIR", nargs="?", default=".", help="a team's project (default: here)")
    init.add_argument("--remove", action="store_true", help="take the hooks out again")
    init.add_argument("--dry-run", action="store_true", help="show what would be written, and write nothing")
    add_home(init)
    init.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Install the hooks in a project, or remove them."""
    project = Path(os.path.realpath(Path(options.directory).expanduser()))
    if not project.is_dir():
        raise BadInput("DIR", f"{options.directory} is not a directory")
    if options.remove:
        hook_settings.remove(project, "bridge", options)
        return 0
    hook_settings.install(project, "bridge", options)
    _warn(project, settings_of(options))
    return 0


def _warn(project: Path, settings: Settings) -> None:
    """Warn about settings that keep messages from being delivered, although the hooks are installed."""
    config = TeamsFile(settings.home)
    team = _at_home(project, config.config.teams.values())
    if team is None:
        say(
            f"warning: no team of {config.path} has its project here, so no messages will be delivered."
            f" Add one with `holdfast teams add NAME --project {project}`.",
            file=sys.stderr,
        )
    elif team.delivery is Delivery.RUN:
        say(
            f'warning: {config.path} has "delivery": "run" for {team.name}, so these hooks deliver nothing.',
            file=sys.stderr,
        )
    else:
        say(f"Messages for {team.name} are delivered to the agent that works here.")


def _at_home(project: Path, teams: Iterable[Team]) -> Team | None:
    """Return the team whose project this is, or contains this."""
    homes = {Path(os.path.realpath(team.project)): team for team in teams}
    return next((homes[folder] for folder in (project, *project.parents) if folder in homes), None)
