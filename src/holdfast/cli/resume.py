"""`holdfast resume`: starts the agent on a project's unfinished work."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from holdfast.agents.registry import AGENTS
from holdfast.cli import show
from holdfast.cli.common import PassingProgress, described_parser, directory_of, is_agent, is_person, settings_of
from holdfast.cli.control import ask_or_do
from holdfast.cli.handoff import config_directory
from holdfast.cli.unfinished import Work, list_work
from holdfast.errors import BadInput, HoldfastError
from holdfast.teams.config_fields import shown
from holdfast.text.paths import typed
from holdfast.text.terminal import say

MAX_LISTED = 50
MAX_LINE = 10_000
RESUME = """\
Continues a project's unfinished work: changes to its directory and starts the agent in the conversation that was
cut off. Where several are open, you are asked which. `holdfast show` prints where the work stands.

Without a terminal nothing is started: the briefing is printed, and on stderr the command that continues the work. In
the shell of a managed agent, and with --json or --budget, it is the briefing alone.

examples:
  holdfast resume                       the newest unfinished work of the project here
  holdfast resume ~/api                 of another project
  holdfast resume --session 5f0c9a1e    a certain conversation
  holdfast resume --print               print the command instead of running it

exit status: that of the agent; 1 if nothing is unfinished
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = described_parser(commands, "resume", RESUME)
    show.add_briefing_options(parser)
    parser.add_argument("--session", metavar="ID", help="this conversation: its id or the beginning of it")
    parser.add_argument("--in", metavar="AGENT", dest="agent", type=_agent, help=f"one of: {', '.join(_agents())}")
    parser.add_argument("--print", action="store_true", help="print the command instead of running it")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Start the agent, or print how."""
    home = settings_of(options).home
    if options.json or options.budget or is_agent(home):
        return show.run(options)
    project = directory_of(options.project)
    interactive = is_person(home) and not options.print
    if not interactive and not options.print:
        show.run(options)
        sys.stdout.flush()
    work = _open_work(options, project)
    if not work:
        where = shown(typed(str(project)), MAX_LINE)
        say(
            f"Nothing is unfinished in {where}. `holdfast show {where}` says what was done there,"
            " `holdfast` lists the unfinished work of all projects.",
            file=sys.stderr,
        )
        return 1 if options.print or interactive else 0
    one = _chosen(work) if interactive and len(work) > 1 else work[0]
    if not one["resumable"]:
        raise HoldfastError(
            f"Session {shown(one['session'])} cannot be continued: its conversation is not on this machine.",
            recovery=f"Start an agent in {one['directory']}: it is told what `holdfast show` prints.",
        )
    if interactive:
        _start(one)
    command = f"cd {typed(one['directory'])} && {shlex.join(one['resume'])}"
    if options.print:
        say(command)
    else:
        say(
            f"Nothing was started, because this is not a terminal. To continue, run in one: {command}",
            file=sys.stderr,
        )
    return 0


def _open_work(options: argparse.Namespace, project: Path) -> list[Work]:
    """Return a project's unfinished work that is meant, the newest first, with what can be resumed before the rest."""
    args = {"project": str(project), "limit": MAX_LISTED, "config": config_directory()}
    found = ask_or_do(settings_of(options), "unfinished", args, PassingProgress())["work"]
    if options.agent is not None:
        found = [one for one in found if one["agent"] == options.agent]
    if options.session is not None:
        found = [one for one in found if one["session"].startswith(options.session)]
        if not found:
            raise BadInput("--session", f"{shown(options.session)} is not unfinished here; `holdfast` lists what is")
    return sorted(found, key=lambda one: not one["resumable"])


def _chosen(work: Sequence[Work]) -> Work:
    """Ask which of several to continue; the newest is the default."""
    list_work(work, [""] * len(work), numbered=True)
    answer = input(f"Which one? 1 to {len(work)}, Enter for 1: ").strip() or "1"
    if not (answer.isascii() and answer.isdigit() and 1 <= int(answer) <= len(work)):
        raise BadInput("number", f"must be 1 to {len(work)}, not {shown(answer)}; nothing was started")
    return work[int(answer) - 1]


def _start(one: Work) -> None:
    """Become the agent, in the directory of its work."""
    directory, argv = one["directory"], one["resume"]
    title = AGENTS[one["agent"]].title
    if not Path(directory).is_dir():
        raise HoldfastError(
            f"{directory} no longer exists.",
            recovery=f"If it was moved: `holdfast project move {typed(directory)} NEW`.",
        )
    program = next(word for word in argv if word != "env" and "=" not in word)
    if shutil.which(program) is None:
        raise HoldfastError(
            f"{title} was not found: there is no `{program}` in PATH.",
            recovery=f"Install it, or run in {typed(directory)} what `holdfast resume --print` prints.",
        )
    say(f"Continuing in {directory}: {shlex.join(argv)}", flush=True)
    sys.stderr.flush()
    os.chdir(directory)
    os.execvp(argv[0], argv)  # noqa: S606


def _agents() -> list[str]:
    return [name for name, agent in AGENTS.items() if agent.resume_command is not None]


def _agent(name: str) -> str:
    if name not in _agents():
        raise argparse.ArgumentTypeError(f"{name!r} cannot be resumed by Holdfast; it can: {', '.join(_agents())}")
    return name
