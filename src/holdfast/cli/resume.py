"""`holdfast resume`: where a project's work stands, as an agent that starts there is told."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from holdfast.cli.common import add_home, settings_of, show_progress
from holdfast.cli.control import ask_or_do
from holdfast.teams.fields import shown
from holdfast.terminal import say

LINE = 10_000
EXAMPLES = """\
examples:
  holdfast resume                what an agent that starts in this directory is told
  holdfast resume ~/api --json   the same of another project, for programs
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "resume",
        help="where a project's work stands, as an agent is told",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("project", metavar="DIR", nargs="?", default=".", help="the project (default: this directory)")
    parser.add_argument("--budget", metavar="TOKENS", type=_tokens, help="how long it may be (default: 1200)")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    add_home(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show the briefing."""
    args = {"project": str(Path(options.project).resolve()), "budget": options.budget}
    found = ask_or_do(settings_of(options), "resume", args, show_progress)
    if options.json:
        print(json.dumps(found, indent=2))
    elif found["text"]:
        for line in found["text"].splitlines():
            say(shown(line, LINE))
    else:
        say(f"Nothing is known of earlier work in {shown(found['project'], LINE)}.")
    return 0


def _tokens(text: str) -> int:
    value = int(text)
    if not 50 <= value <= 2_500:
        raise argparse.ArgumentTypeError("must be 50 to 2500")
    return value
