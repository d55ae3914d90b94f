"""`holdfast show`: the briefing that an agent starting in a project gets; `holdfast project dismiss`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from holdfast.cli.common import described_parser, settings_of, show_progress
from holdfast.cli.control import ask_or_do
from holdfast.teams.config_fields import shown
from holdfast.text.terminal import say

MAX_LINE = 10_000
SHOW = """\
Shows where a project's work stands: what was asked, done and left, by whom. It is what an agent that starts there is
told. `holdfast resume` goes on with it.

examples:
  holdfast show                 of the project here
  holdfast show ~/api --json    of another one, as JSON
"""
DISMISS = """\
Stops mentioning a session's open work, because it is done or not wanted, until that session is resumed.

example:
  holdfast project dismiss 5f0c9a1e
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    show = described_parser(commands, "show", SHOW)
    add_briefing_options(show)
    show.set_defaults(run=run)

    dismiss = described_parser(commands, "dismiss", DISMISS)
    dismiss.add_argument("session", metavar="SESSION", help="its id or the beginning of it; `holdfast show` names it")
    dismiss.add_argument("project", metavar="DIR", nargs="?", default=".", help="the project (default: this directory)")
    dismiss.set_defaults(run=run_dismiss)


def add_briefing_options(parser: argparse.ArgumentParser) -> None:
    """Add what a briefing can be asked with."""
    parser.add_argument("project", metavar="DIR", nargs="?", default=".", help="the project (default: this directory)")
    parser.add_argument("--budget", metavar="TOKENS", type=_tokens, help="how long it may be (default: 1200)")
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run(options: argparse.Namespace) -> int:
    """Show the briefing."""
    args = {"project": str(Path(options.project).expanduser().resolve()), "budget": options.budget}
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
    args = {"project": str(Path(options.project).expanduser().resolve()), "session": options.session}
    result = ask_or_do(settings_of(options), "dismiss", args, show_progress)
    say(f"The open work of session {shown(result['dismissed'], MAX_LINE)} will not be mentioned again.")
    return 0


def _tokens(text: str) -> int:
    value = int(text)
    if not 50 <= value <= 2_500:
        raise argparse.ArgumentTypeError("must be 50 to 2500")
    return value
