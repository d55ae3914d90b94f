"""`holdfast bridge init`: the hooks that bring a project's live agent its messages, and the server with its tools."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from holdfast.agents.registry import settings_of as agent_settings
from holdfast.agents.settings import Scope, SetupRequest
from holdfast.cli import hook_settings
from holdfast.cli.common import add_home, directory_of, other_home, settings_of
from holdfast.config import Settings
from holdfast.errors import HoldfastError
from holdfast.setup.steps import apply
from holdfast.teams.config_file import TeamsFile
from holdfast.teams.team import Delivery, Team
from holdfast.text.terminal import say

TOOLS = "take_message, finish_message and save_task"
SET_UP = "`holdfast setup claude` registers it."


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    init = verbs.add_parser(
        "init", help="install the hooks that bring messages to a project's live agent, and its MCP server"
    )
    init.add_argument("directory", metavar="DIR", nargs="?", default=".", help="a team's project (default: here)")
    init.add_argument("--remove", action="store_true", help="take hooks and server out again")
    init.add_argument("--dry-run", action="store_true", help="show what would be written, and write nothing")
    add_home(init)
    init.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Install the hooks and the server in a project, or remove what was installed."""
    project, settings = directory_of(options.directory), settings_of(options)
    if options.remove:
        hook_settings.remove(project, "bridge", options)
        return 0 if _unregister(project, settings, dry_run=options.dry_run) else 1
    hook_settings.install(project, "bridge", options)
    complete = _register(project, settings, dry_run=options.dry_run)
    _warn(project, settings)
    return 0 if complete else 1


def _register(project: Path, settings: Settings, *, dry_run: bool) -> bool:
    """Register the MCP server for this user in the project, unless it is there; return whether it is, or would be."""
    agent = agent_settings()
    try:
        if agent.plugin(os.environ, project) is not None:
            return True
        if any(server.is_of(settings.home) for server in agent.servers(os.environ, project)):
            return True
        step = agent.register_server(_request(project, settings))
        if step is None:
            raise HoldfastError("This agent's server is registered by its own setup.")
        print(f"{'Would register' if dry_run else 'Registering'} the MCP server, for {TOOLS}:\n\n{step.shown()}")
        if not dry_run:
            apply([step])
    except HoldfastError as problem:
        say(f"warning: the agent here does not have {TOOLS}: {problem} {SET_UP}", file=sys.stderr)
        return False
    return True


def _unregister(project: Path, settings: Settings, *, dry_run: bool) -> bool:
    """Take out the MCP server that was registered here, unless a project above needs it; False if that fails."""
    agent = agent_settings()
    if any(agent.hooks_installed(folder, "bridge") for folder in project.parents):
        return True
    try:
        step = agent.unregister_server(_request(project, settings))
        if step is not None:
            print(f"{'Would remove' if dry_run else 'Removing'} the MCP server:\n\n{step.shown()}")
            if not dry_run:
                apply([step])
    except HoldfastError as problem:
        say(f"warning: the MCP server is still registered: {problem}", file=sys.stderr)
        return False
    return True


def _request(project: Path, settings: Settings) -> SetupRequest:
    return SetupRequest(Scope.LOCAL, project, settings.home, other_home(settings), os.environ)


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
