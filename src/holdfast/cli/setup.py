"""`holdfast setup`: adds Holdfast to an agent's settings, after showing the changes and asking; also removes it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from holdfast.agents import Agent
from holdfast.agents.registry import AGENTS
from holdfast.agents.settings import CORE_TOOLS, Allow, Scope, SettingsPart, SetupRequest
from holdfast.cli.common import add_home, directory_of, other_home, settings_of, show_progress
from holdfast.cli.control import ask_or_do
from holdfast.cli.handoff import config_directory
from holdfast.cli.hook_settings import exclude_from_git
from holdfast.config import Settings
from holdfast.errors import HoldfastError
from holdfast.setup import ending
from holdfast.setup.steps import Step, apply
from holdfast.text import counted
from holdfast.text.terminal import say

DESCRIPTION = """\
Adds Holdfast to an agent's settings: the MCP server `holdfast` and, for Claude Code, three hooks (at the start, at
a compaction and at the end of a session). Shows every change first and asks once. Running it again changes nothing;
--remove removes what it added, and restores files that were not changed since, byte for byte. Files that
cannot be read are refused. For Claude Code it ends with the unfinished work that it finds on this machine.
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
    for agent in AGENTS.values():
        if agent.settings is not None:
            _add_agent(agents, agent, agent.settings())


def _add_agent(
    agents: argparse._SubParsersAction[argparse.ArgumentParser], agent: Agent, settings: SettingsPart
) -> None:
    parser = agents.add_parser(
        agent.name,
        help=agent.title,
        description=f"Add Holdfast to the settings of {agent.title}, or remove it.",
        epilog=f"example:\n  holdfast setup {agent.name} --dry-run",
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
    for scope in settings.scopes:
        chosen.add_argument(f"--{scope}", dest="scope", action="store_const", const=scope, help=says[scope])
    if settings.offers_rules:
        parser.add_argument(
            "--allow",
            choices=[one.value for one in Allow],
            help="which tools the agent may use without asking: none, the core, all (default: unchanged)",
        )
    parser.add_argument("--remove", action="store_true", help="remove Holdfast again")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask; for scripts")
    add_home(parser)
    parser.set_defaults(run=run, scope=Scope.USER, allow=None, agent=agent, settings=settings)


def run(options: argparse.Namespace) -> int:
    """Set up an agent, or remove Holdfast from it."""
    agent: Agent = options.agent
    agent_settings: SettingsPart = options.settings
    project, settings = directory_of(options.directory), settings_of(options)
    setup = agent_settings.setup(SetupRequest(options.scope, project, settings.home, other_home(settings), os.environ))
    if options.remove:
        agreed = _carried_out(setup.remove(), options)
        if agreed and not options.dry_run and (settings.database_url or settings.database.exists()):
            _open_gates(settings)
        return 0 if agreed else 1
    allow = None if options.allow is None else Allow(options.allow)
    offers = agent_settings.offers_rules and allow is None and not options.yes and not setup.has_rules()
    agreed = _carried_out(setup.install(allow), options, (lambda: setup.install(Allow.CORE)) if offers else None)
    if not agreed or options.dry_run:
        return 0 if agreed else 1
    if agent.hooks is None:
        say(f"{agent.title} starts `holdfast` with its next session. `holdfast doctor` checks Holdfast itself.")
        if options.scope is Scope.PROJECT and agent_settings.shared_file_note:
            say(agent_settings.shared_file_note)
        return 0
    if options.scope is Scope.LOCAL and (excluded := exclude_from_git(project, agent_settings.local_file)):
        say(f"{excluded} stays out of git (.git/info/exclude).")
    print("\nSessions use it from their next start. Checking the whole chain as it is installed:\n", flush=True)
    from holdfast.cli import doctor

    if doctor.run(["--home", str(settings.home)]) != 0:
        say(f"{agent.title} is set up, but the faults above still need repair.", file=sys.stderr)
    if agent.transcripts is not None:
        _end(agent, settings, asks=not options.yes)
    return 0


def _end(agent: Agent, settings: Settings, *, asks: bool) -> None:
    """Show the unfinished work on this machine, and offer to index conversations; what fails here fails no setup."""
    config = config_directory()
    print()
    try:
        found = ask_or_do(settings, "unfinished", {"limit": ending.ASKED_FOR, "config": config}, show_progress)
        for line in ending.unfinished_lines(found):
            say(line)
        offer = ending.IndexOffer(settings.home)
        has_any = found["looked_at"]["sessions"] > 0
        if has_any and offer.is_due and not ask_or_do(settings, "history-imported", {}, show_progress)["files"]:
            offer.note()
            _offer_index(agent, settings, config, asks=asks)
    except (HoldfastError, OSError) as failure:
        say(f"Unfinished work could not be searched for: {failure} `holdfast` tries again.", file=sys.stderr)


def _offer_index(agent: Agent, settings: Settings, config: str, *, asks: bool) -> None:
    command = f"holdfast import {agent.name} --all"
    if not asks or not sys.stdin.isatty():
        say(f"`{command}` indexes all conversations on this machine for `holdfast find`.")
        return
    try:
        answer = input(f"Index all conversations on this machine for `holdfast find` ({command})? [y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() in ("y", "yes"):
        done = ask_or_do(settings, "history-import", {"project": None, "config": config}, show_progress)
        say(f"{done['passages']} passages of {counted(done['found'], 'transcript')} indexed.")
    else:
        say(f"`{command}` does it at any time.")


def _open_gates(settings: Settings) -> None:
    """Have git let commits through: nobody is left who could bring a blocked session to its end."""
    try:
        ask_or_do(settings, "protocol-open-gates", {}, show_progress)
    except HoldfastError as failure:
        say(f"Where a session is blocked, git may refuse commits for up to a day: {failure}", file=sys.stderr)


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
    answer = "y" if options.yes else _choice(offers_rules=with_rules is not None)
    if answer == "n":
        say("Nothing was changed.")
        return False
    apply(with_rules() if answer == "a" and with_rules is not None else steps)
    say("Done.")
    return True


def _choice(*, offers_rules: bool) -> str:
    if not sys.stdin.isatty():
        raise HoldfastError(
            "Nothing was changed: there is no terminal to ask on.",
            recovery="Use --yes to agree in advance, or --dry-run to only look.",
        )
    question = "Continue? [y/N] "
    if offers_rules:
        say(f"The agent asks you before each use of a tool. The core tools are {', '.join(CORE_TOOLS)}.")
        question = "Continue? y: yes; a: yes, and allow the core tools; N: no [y/a/N] "
    try:
        answer = input(question).strip().lower()
    except EOFError:
        return "n"
    if answer in ("y", "yes"):
        return "y"
    return "a" if answer == "a" and offers_rules else "n"
