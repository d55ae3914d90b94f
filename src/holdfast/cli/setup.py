"""`holdfast setup`: adds Holdfast to an agent's settings, after showing the changes and asking; also removes it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.agents.claude import settings as claude_settings
from holdfast.agents.claude.permissions import CORE, Allow
from holdfast.agents.claude.setup import ClaudeSetup, Scope
from holdfast.agents.other_settings import AGENTS, Agent, server_for
from holdfast.cli.common import add_home, other_home, settings_of
from holdfast.errors import BadInput, HoldfastError
from holdfast.git.directory import git_answer, keep_out_of_git
from holdfast.setup.originals import Originals
from holdfast.setup.steps import Step, apply
from holdfast.text.terminal import say

DESCRIPTION = """\
Adds Holdfast to an agent's settings: the MCP server `holdfast` and, for Claude Code, three hooks (SessionStart,
PreCompact, SessionEnd). Shows every change first and asks once. Running it again changes nothing; --remove removes what
it added, and restores files that were not changed since, byte for byte. Files that cannot be read are refused.
"""
EXAMPLES = """\
examples:
  holdfast setup claude                       for you, in every project
  holdfast setup claude --project             for everyone who works on the project here (files to commit)
  holdfast setup claude --yes --allow core    in a script; the agent may use the core tools without asking
  holdfast setup claude --remove              remove it again
  holdfast setup codex --dry-run              show what would change, and change nothing

exit status: 0 done; 1 refused or declined, nothing was changed; 2 usage error
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    setup = commands.add_parser(
        "setup",
        help="add Holdfast to an agent's settings, or remove it",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    agents = setup.add_subparsers(metavar="<agent>", title="agents", required=True)
    claude = _add_agent(agents, "claude", "Claude Code", [Scope.USER, Scope.PROJECT, Scope.LOCAL])
    claude.add_argument(
        "--allow",
        choices=[one.value for one in Allow],
        help="which tools the agent may use without asking: none, the core, all (default: unchanged)",
    )
    claude.set_defaults(run=run_claude)
    for agent in AGENTS.values():
        other = _add_agent(agents, agent.name, agent.title, [Scope.USER, Scope.PROJECT])
        other.set_defaults(run=run_other, agent=agent)


def _add_agent(
    agents: argparse._SubParsersAction[argparse.ArgumentParser], name: str, title: str, scopes: Sequence[Scope]
) -> argparse.ArgumentParser:
    parser = agents.add_parser(
        name,
        help=title,
        description=f"Add Holdfast to the settings of {title}, or remove it.",
        epilog=f"example:\n  holdfast setup {name} --dry-run",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "directory", metavar="DIR", nargs="?", default=".", help="the project to set up (default: here)"
    )
    chosen = parser.add_mutually_exclusive_group()
    says = {
        Scope.USER: "for you, in every project (default)",
        Scope.PROJECT: "for everyone who works on the project: files to commit, with nothing specific to this machine",
        Scope.LOCAL: "for you, in this project",
    }
    for scope in scopes:
        chosen.add_argument(f"--{scope}", dest="scope", action="store_const", const=scope, help=says[scope])
    parser.set_defaults(scope=Scope.USER)
    parser.add_argument("--remove", action="store_true", help="remove Holdfast again")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask; for scripts")
    add_home(parser)
    return parser


def run_claude(options: argparse.Namespace) -> int:
    """Set up Claude Code, or remove Holdfast from it."""
    project, settings = _project(options), settings_of(options)
    setup = ClaudeSetup(options.scope, project, settings.home, other_home(settings), os.environ)
    if options.remove:
        return 0 if _carried_out(setup.remove(), options) else 1
    allow = None if options.allow is None else Allow(options.allow)
    offers = allow is None and not options.yes and not setup.has_rules()
    agreed = _carried_out(setup.install(allow), options, (lambda: setup.install(Allow.CORE)) if offers else None)
    if not agreed or options.dry_run:
        return 0 if agreed else 1
    if options.scope is Scope.LOCAL:
        _keep_local_settings_out_of_git(project)
    print("\nSessions use it from their next start. Checking the whole chain as it is installed:\n", flush=True)
    from holdfast.cli import doctor

    if doctor.run(["--home", str(settings.home)]) != 0:
        say("Claude Code is set up, but the faults above still need repair.", file=sys.stderr)
    return 0


def run_other(options: argparse.Namespace) -> int:
    """Set up another agent, or remove Holdfast from it."""
    agent: Agent = options.agent
    settings = settings_of(options)
    project = _project(options) if options.scope is Scope.PROJECT else None
    path, originals = agent.file(project, os.environ), Originals(settings.home)
    if options.remove:
        steps = agent.remove(path, originals)
    else:
        steps = agent.install(path, server_for(project, other_home(settings)), originals)
    agreed = _carried_out(steps, options)
    if agreed and not options.remove and not options.dry_run:
        say(f"{agent.title} starts `holdfast` with its next session. `holdfast doctor` checks Holdfast itself.")
        if project is not None and agent.note:
            say(agent.note)
    return 0 if agreed else 1


def _carried_out(
    steps: Sequence[Step], options: argparse.Namespace, with_rules: Callable[[], Sequence[Step]] | None = None
) -> bool:
    """Show the steps, ask, and do them; return whether everything is then (or would be) as it should be."""
    needed = [step for step in steps if step.needed]
    if not needed:
        say("Holdfast is not set up here." if options.remove else "Everything is already set up.")
        return True
    print("This would change:\n" if options.dry_run else "This will change:\n")
    for step in needed:
        print(step.shown())
    if options.dry_run:
        return True
    answer = "y" if options.yes else _asked(offers_rules=with_rules is not None)
    if answer == "n":
        say("Nothing was changed.")
        return False
    apply(with_rules() if answer == "a" and with_rules is not None else steps)
    say("Done.")
    return True


def _asked(*, offers_rules: bool) -> str:
    if not sys.stdin.isatty():
        raise HoldfastError(
            "Nothing was changed: there is no terminal to ask on.",
            recovery="Use --yes to agree in advance, or --dry-run to only look.",
        )
    question = "Continue? [y/N] "
    if offers_rules:
        say(f"The agent asks you before each use of a tool. The core tools are {', '.join(CORE)}.")
        question = "Continue? y: yes; a: yes, and allow the core tools; N: no [y/a/N] "
    try:
        given = input(question).strip().lower()
    except EOFError:
        return "n"
    if given in ("y", "yes"):
        return "y"
    return "a" if given == "a" and offers_rules else "n"


def _project(options: argparse.Namespace) -> Path:
    project = Path(os.path.realpath(Path(options.directory).expanduser()))
    if not project.is_dir():
        raise BadInput("DIR", f"{options.directory} is not a directory")
    return project


def _keep_local_settings_out_of_git(project: Path) -> None:
    """Exclude the local settings from git: they name this machine's Python."""
    top = git_answer(project, "rev-parse", "--show-toplevel")
    if top is None:
        return
    name = (project.relative_to(os.path.realpath(top)) / claude_settings.LOCAL).as_posix()
    if keep_out_of_git(project, name):
        say(f"{name} stays out of git (.git/info/exclude).")
