"""`holdfast bridge chat`: the chat of a target, in which its owner writes to its agent."""

from __future__ import annotations

import argparse
from typing import Any

from holdfast.cli.common import add_home, is_person, settings_of
from holdfast.errors import BadInput
from holdfast.teams.config_fields import shown
from holdfast.teams.config_file import TeamsFile
from holdfast.text.terminal import say


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    chat = verbs.add_parser("chat", help="link a Telegram chat to a target; the bot tells its number and yours")
    chat.add_argument("target", metavar="TARGET", help="as `holdfast inbox` shows it")
    chat.add_argument("chat", metavar="CHAT", nargs="?", help="the chat's number, or a group's @name")
    chat.add_argument("--topic", metavar="N", type=int, help="only this topic of a forum group")
    chat.add_argument(
        "--user", metavar="ID", type=int, action="append", dest="users", help="who may write there; may be repeated"
    )
    chat.add_argument("--remove", action="store_true", help="remove its chat instead")
    add_home(chat)
    chat.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Link a chat to a target, or remove its chat."""
    home = settings_of(options).home
    file = TeamsFile(home)
    waited = [team.name for team in file.waiting()]
    team = file.set_chat(options.target, None if options.remove else _chat(options))
    if options.remove:
        say(f"{shown(team.name)} no longer has a chat.")
    else:
        say(f"The chat {shown(options.chat)} is linked to {shown(team.name)}.")
    # The caller has not seen rights that waited before this command.
    if is_person(home) and team.name not in waited:
        file.confirm([team])
    elif team in file.waiting():
        say("It takes effect once you run `holdfast teams confirm` in a terminal.")
    return 0


def _chat(options: argparse.Namespace) -> dict[str, Any]:
    if options.chat is None or not options.users:
        raise BadInput(
            "CHAT" if options.chat is None else "--user",
            "is required",
            recovery="Write to the bot: it answers with the command that links the chat.",
        )
    topic = {} if options.topic is None else {"topic": options.topic}
    return {"id": options.chat, **topic, "allowedUsers": options.users}
