"""`holdfast approve` and `holdfast deny`: the word that a managed agent waits for."""

from __future__ import annotations

import argparse
import json

from holdfast.cli.common import add_home, settings_of, show_progress
from holdfast.cli.control import ask_or_do


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    for name, allowed, text in (
        ("approve", True, "let a managed agent do what it asks for (without an id: list what waits)"),
        ("deny", False, "refuse what a managed agent asks for"),
    ):
        parser = commands.add_parser(name, help=text)
        parser.add_argument("id", metavar="ID", nargs="?", help="the request; its first characters are enough")
        add_home(parser)
        parser.set_defaults(run=run, allowed=allowed)


def run(options: argparse.Namespace) -> int:
    """Decide a request, or list them."""
    settings = settings_of(options)
    waiting = ask_or_do(settings, "permissions", {}, show_progress)["requests"]
    if options.id is None:
        for request in waiting:
            print(f"{request['id']}  {request['team']}: {request['tool']} {_short(request['input'])}")
        if not waiting:
            print("Nobody asks for a permission.")
        return 0
    matching = [request["id"] for request in waiting if request["id"].startswith(options.id)]
    chosen = matching[0] if len(matching) == 1 else options.id
    decided = ask_or_do(settings, "permit", {"id": chosen, "allowed": options.allowed}, show_progress)
    print(f"{'Allowed' if options.allowed else 'Denied'}: {decided['tool']} of team {decided['team']}.")
    return 0


def _short(text: str) -> str:
    try:
        given = json.loads(text)
    except ValueError:
        return text[:100]
    return json.dumps(given, ensure_ascii=False)[:100]
