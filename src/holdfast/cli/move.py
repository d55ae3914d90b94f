"""`holdfast move`: tell Holdfast that a project's directory was moved."""

from __future__ import annotations

import argparse
from pathlib import Path

from holdfast.cli.common import add_home, settings_of, show_progress
from holdfast.cli.control import ask_or_do
from holdfast.teams.config_fields import shown
from holdfast.text.terminal import say

MAX_LINE = 10_000
EXAMPLES = """\
examples:
  holdfast move ~/old/api ~/api   its directory is now ~/api: find its sessions, reasoning and runs there
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "move",
        description="Tell Holdfast that a project's directory was moved: its data moves along.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("old", metavar="OLD", help="where it was; must no longer exist")
    parser.add_argument("new", metavar="NEW", help="where it is now")
    add_home(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Move a project's data to its new directory."""
    args = {"old": str(Path(options.old).expanduser().resolve()), "new": str(Path(options.new).resolve())}
    result = ask_or_do(settings_of(options), "move", args, show_progress)
    say(f"Moved everything about {shown(result['old'], MAX_LINE)} to {shown(result['new'], MAX_LINE)}.")
    if result["transcripts"]:
        say(f"{result['transcripts']} transcripts were copied to where the agent looks for them.")
    say("If it has a protocol of its own, trust it again: holdfast trust")
    return 0
