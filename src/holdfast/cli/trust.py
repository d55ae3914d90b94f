"""`holdfast trust`: allows a project's commands to run, for exactly this content."""

from __future__ import annotations

import argparse
import json
import shlex

from holdfast.agents.project_settings import ProjectSettings
from holdfast.agents.registry import settings_of as agent_settings
from holdfast.cli.common import add_home, agreed, settings_of, show_progress
from holdfast.cli.control import ask_or_do
from holdfast.cli.protocol import add_directory, is_trusted, worktree_at
from holdfast.errors import Conflict
from holdfast.protocol.project.settings import MCP_SERVERS, ProjectProtocol, read_project
from holdfast.teams.config_fields import shown
from holdfast.text.terminal import quoted_block, say

MAX_SHOWN = 300_000
"""Larger than anything that can be trusted, so that it is always shown in full."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    trust = commands.add_parser(
        "trust",
        help="let a project's commands and agent settings take effect, until they are changed",
        description="Show what a project's protocol would run and what its managed agents would use, and allow it."
        " A change to that content needs new trust.",
    )
    add_directory(trust)
    trust.add_argument("--revoke", action="store_true", help="no longer trust the project")
    add_home(trust)
    trust.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Trust a project as it is now, or revoke that."""
    worktree = worktree_at(options)
    place = shown(str(worktree.path), MAX_SHOWN)
    if options.revoke:
        was = ask_or_do(settings_of(options), "untrust", {"root": worktree.root}, show_progress)["was_trusted"]
        say(f"{place} is {'no longer trusted' if was else 'not trusted'}.")
        return 0
    project = read_project(worktree.path)
    if project.faults:
        raise Conflict(
            f"{place} cannot be trusted: {shown(str(project.faults[0]), 400)}",
            recovery="`holdfast protocol check` shows every fault.",
        )
    brought = agent_settings().of_project(worktree.path)
    if brought.problem is not None:
        print(f"The agent settings of {place} cannot be trusted: {shown(brought.problem, 400)}\n")
    programs = [*runnable(project), *followed(brought)]
    if not programs:
        say(f"{place} has nothing to run, so there is nothing to trust.")
        return 0
    if is_trusted(options, worktree, project, brought):
        say(f"{place} is already trusted.")
        return 0
    print(f"Once trusted, {place} can run this as you:\n")
    for program in programs:
        print(quoted_block(program))
    for path in brought.not_compared:
        say(f"NOT COMPARED, because it is too large or leads out of the project: {shown(path, MAX_SHOWN)}")
    print(
        "\nThat includes whatever those programs run. Trust ends when these files change, not when what they run does."
    )
    if not agreed(settings_of(options).home, "trust a project", "Trust it?"):
        say("It was not trusted.")
        return 1
    # Trust exactly what was shown: a file that changed since has another digest.
    digests = {"digest": project.digest, "agent_digest": brought.digest}
    ask_or_do(settings_of(options), "trust", {"root": worktree.root, **digests}, show_progress)
    say(f"{place} is trusted. Undo this with `holdfast trust --revoke`.")
    return 0


def runnable(project: ProjectProtocol) -> list[str]:
    """Return everything in a project that trust would allow to run, one line each."""
    programs = [shlex.join(argv) for argv in project.commands]
    for name, entry in project.serena.items():
        programs.append(f"the MCP server {name} of {MCP_SERVERS}: {json.dumps(entry, ensure_ascii=False)}")
    return programs


def followed(brought: ProjectSettings) -> list[str]:
    """Return the settings that managed agents would use, one line each."""
    return [
        f"by managed agents: {path}" + (f": {content.decode('utf-8', 'replace')}" if path in brought.shown else "")
        for path, content in brought.files.items()
    ]
