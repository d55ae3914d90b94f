"""Puts hooks into a project's settings: each change is shown, and a file of one machine stays out of git."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from holdfast.agents.registry import settings_of as agent_settings
from holdfast.cli.common import other_home, settings_of
from holdfast.git.directory import git_answer, keep_out_of_git
from holdfast.setup.json_file import Change
from holdfast.setup.launcher import refresh
from holdfast.text.terminal import one_line, say


def install(project: Path, purpose: str, options: argparse.Namespace) -> None:
    """Add the hooks of a purpose to a project."""
    agent, settings = agent_settings(), settings_of(options)
    _apply(agent.install_hooks(project, purpose, home=other_home(settings)), options)
    if not options.dry_run:
        refresh(settings.home)
        exclude_from_git(project, agent.local_file)


def remove(project: Path, purpose: str, options: argparse.Namespace) -> None:
    """Remove the hooks of a purpose from a project."""
    _apply(agent_settings().remove_hooks(project, purpose), options)


def exclude_from_git(project: Path, file: str | None) -> str | None:
    """Exclude local settings, which name this machine's Python, from git; return their path if that is new."""
    top = git_answer(project, "rev-parse", "--show-toplevel")
    if top is None or file is None:
        return None
    name = (project.relative_to(os.path.realpath(top)) / file).as_posix()
    return name if keep_out_of_git(project, name) else None


def _apply(change: Change | None, options: argparse.Namespace) -> None:
    if change is None:
        return
    if not change.needed:
        say(f"The hooks in {change.path} are up to date.")
        return
    print(f"{'Would change' if options.dry_run else 'Changing'} {one_line(str(change.path))}:\n\n{change.diff()}")
    if not options.dry_run:
        change.write()
