"""`holdfast resume`: the briefing that an agent starting in a project gets; `holdfast dismiss`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from holdfast.cli.common import add_home, settings_of, show_progress
from holdfast.cli.control import ask_or_do
from holdfast.teams.config_fields import shown
from holdfast.text.terminal import say

MAX_LINE = 10_000
EXAMPLES = """\
examples:
  holdfast resume                the briefing that an agent starting in this directory gets
  holdfast resume ~/api --json   the same for another project, as JSON
  holdfast dismiss 5f0c9a1e      stop mentioning that session's open work: it is done or not wanted
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    parser = commands.add_parser(
        "resume",
        help="show where a project's work stands, as in an agent's briefing",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("project", metavar="DIR", nargs="?", default=".", help="the project (default: this directory)")
    parser.add_argument("--budget", metavar="TOKENS", type=_tokens, help="how long it may be (default: 1200)")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    add_home(parser)
    parser.set_defaults(run=run, for_agents=True)
    parser = commands.add_parser("dismiss", help="stop mentioning a session's open work: it is done or not wanted")
    parser.add_argument("session", metavar="SESSION", help="its id or the beginning of it; `holdfast resume` names it")
    parser.add_argument("project", metavar="DIR", nargs="?", default=".", help="the project (default: this directory)")
    add_home(parser)
    parser.set_defaults(run=run_dismiss)


def run(options: argparse.Namespace) -> int:
    """Show the briefing."""
    args = {"project": str(Path(options.project).resolve()), "budget": options.budget}
    result = ask_or_do(settings_of(options), "resume", args, show_progress)
    if options.json:
        print(json.dumps(result, indent=2))
    elif result["text"]:
        for line in result["text"].splitlines():
            say(shown(line, MAX_LINE))
    else:
        say(f"Nothing is known of earlier work in {shown(result['project'], MAX_LINE)}.")
    return 0


def run_dismiss(options: argparse.Namespace) -> int:
    """Stop mentioning a session's open work."""
    args = {"project": str(Path(options.project).resolve()), "session": options.session}
    result = ask_or_do(settings_of(options), "dismiss", args, show_progress)
    say(f"The open work of session {shown(result['dismissed'], MAX_LINE)} will not be mentioned again.")
    return 0


def _tokens(text: str) -> int:
    value = int(text)
    if not 50 <= value <= 2_500:
        raise argparse.ArgumentTypeError("must be 50 to 2500")
    return value
