"""`holdfast approve` and `holdfast deny`: decide what a managed agent asks permission for."""

from __future__ import annotations

import argparse
import json
from typing import Any

from holdfast.cli.common import add_home, require_person, settings_of, show_progress
from holdfast.cli.control import ask_or_do
from holdfast.errors import BadInput
from holdfast.teams.config_fields import shown
from holdfast.teams.permissions import LONGEST, shown_input
from holdfast.text.terminal import quoted_block, say

MIN_ID = 4
"""Characters of an id that are enough to identify a request."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    for name, allowed, text in (
        ("approve", True, "Allow what a managed agent asks for. Without an id, the requests are listed."),
        ("deny", False, "Refuse what a managed agent asks for. Without an id, the requests are listed."),
    ):
        parser = commands.add_parser(name, description=text)
        parser.add_argument("id", metavar="ID", nargs="?", help="the request; its first four characters are enough")
        parser.add_argument("--json", action="store_true", help="list the requests as JSON")
        add_home(parser)
        parser.set_defaults(run=run, allowed=allowed)


def run(options: argparse.Namespace) -> int:
    """Decide a request, or list them."""
    settings = settings_of(options)
    waiting = ask_or_do(settings, "permissions", {}, show_progress)["requests"]
    if options.json and options.id is not None:
        raise BadInput("--json", "lists the requests; leave it out to decide one")
    if options.id is None:
        for request in [] if options.json else waiting:
            _show(request)
        if options.json or not waiting:
            say(json.dumps(waiting) if options.json else "No permission requests.")
        return 0
    matching = [request for request in waiting if request["id"].startswith(options.id) and len(options.id) >= MIN_ID]
    decision = {"id": options.id, "allowed": options.allowed}
    if len(matching) == 1:
        _show(matching[0])
        if options.allowed:
            require_person(settings.home, "allow what an agent asks for")
        decision |= {"id": matching[0]["id"], "digest": matching[0]["digest"]}
    decided = ask_or_do(settings, "permit", decision, show_progress)
    say(f"{'Allowed' if options.allowed else 'Denied'}: {shown(decided['tool'], LONGEST)} of team {decided['team']}.")
    return 0


def _show(request: dict[str, Any]) -> None:
    """Print a request in full: hidden parts cannot be judged."""
    say(f"{request['id']}  {request['team']}: {shown(request['tool'], LONGEST)}")
    print(quoted_block(shown_input(request["input"])))
