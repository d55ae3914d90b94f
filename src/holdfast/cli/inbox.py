"""`holdfast inbox`, `queue`, `pull`, `tail`: what waits for a target, and what happened there."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from holdfast.cli.common import add_home, described_parser, is_agent, settings_of, show_progress
from holdfast.cli.control import ask_daemon, ask_or_do
from holdfast.cli.table import show_table
from holdfast.config import Settings
from holdfast.errors import BadInput, NoDaemon, NotFound
from holdfast.teams.config_fields import shown
from holdfast.text.terminal import say
from holdfast.times import iso, local

FOLLOW_SECONDS = 1.0
HOUR_MS = 3_600_000
"""How far `tail` looks back when it starts."""
WEEK_MS = 168 * HOUR_MS
"""How far `inbox` looks back."""
RECENT = 10
MAX_LINE = 10_000
MAX_CELL = 40
MAX_TEXT = 100
"""Characters of a message beside its id, or above its answer."""
EMOJI = "\ufe0f"
"""Asks for the coloured form of the sign before it; a terminal does without."""
HEADINGS = ("TARGET", "PENDING", "IN PROGRESS", "DEAD", "HELD", "LAST SEEN", "SESSION", "TASK")
MESSAGE_HEADINGS = ("STATE", "ID", "SENT", "FROM", "TEXT")
STATES = {"leased": "in progress", "pending": "waiting", "dead": "dead"}
NO_TARGETS = "There are no targets yet; each team is one. Add a team with `holdfast teams add NAME --project DIR`."
INBOX = """\
Shows what waits for the agents of your projects, and what they answered in the last week, the latest last. A target is
the name of a team; with one, its messages are listed too.

examples:
  holdfast inbox                   every target, and the latest answers
  holdfast inbox shop              one target with its messages
  holdfast inbox --follow          keep showing what happens, until Ctrl-C
"""

Update = dict[str, Any]


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    inbox = described_parser(commands, "inbox", INBOX)
    inbox.add_argument("target", metavar="TARGET", nargs="?", help="only this one, and its messages")
    inbox.add_argument("--follow", action="store_true", help="keep showing what happens, until Ctrl-C")
    inbox.add_argument("--json", action="store_true", help="print it as JSON")
    inbox.set_defaults(run=run_inbox)

    pull = commands.add_parser("pull")
    pull.add_argument("target", metavar="TARGET", help="as `holdfast inbox` shows it")
    pull.add_argument("--since", metavar="CURSOR", help="the last cursor, or a time such as 2026-01-31T12:00:00Z")
    pull.add_argument("--json", action="store_true", help="print it as JSON")
    add_home(pull)
    pull.set_defaults(run=run_pull)

    queue = commands.add_parser("queue")
    queue.add_argument("target", metavar="TARGET", nargs="?", help="only this one, and its messages")
    queue.add_argument("--json", action="store_true", help="print it as JSON")
    add_home(queue)
    queue.set_defaults(run=run_queue)

    tail = commands.add_parser("tail")
    tail.add_argument("target", metavar="TARGET", nargs="?", help="only this one (default: all)")
    add_home(tail)
    tail.set_defaults(run=run_tail)


def run_inbox(options: argparse.Namespace) -> int:
    """Show what waits and what happened, or follow it."""
    if options.follow:
        if options.json:
            raise BadInput("--json", "does not go with --follow")
        return run_tail(options)
    settings = settings_of(options)
    targets = _targets(ask_or_do(settings, "bridge-queue", {}, show_progress), options.target)
    messages = []
    if options.target is not None:
        messages = ask_or_do(settings, "bridge-messages", {"target": options.target}, show_progress)["messages"]
    updates = []
    if targets:
        week = iso(int(time.time() * 1000) - WEEK_MS)
        updates = _news(_ask_or_do, settings, dict.fromkeys(targets, week))[-RECENT:]
    if options.json:
        say(json.dumps({"targets": targets, "messages": messages, "updates": updates}))
    elif not targets:
        say(NO_TARGETS)
    else:
        _show_targets(targets, messages)
        say("")
        _print(updates, of_one=options.target is not None)
        if not updates:
            say("Nothing happened in the last week. `holdfast send TARGET MESSAGE` sends something.")
    return 0


def _ask_or_do(settings: Settings, name: str, args: dict[str, Any]) -> dict[str, Any]:
    return ask_or_do(settings, name, args, show_progress)


def _news(ask: Callable[..., dict[str, Any]], settings: Settings, since: dict[str, str]) -> list[Update]:
    """Return what happened at each target since its cursor, which is moved on."""
    news: list[Update] = []
    while (page := ask(settings, "bridge-follow", {"since": since}))["updates"]:
        news += page["updates"]
        since |= page["cursors"]
    return news


def run_pull(options: argparse.Namespace) -> int:
    args = {"target": options.target, "since": options.since}
    pulled = ask_or_do(settings_of(options), "bridge-pull", args, show_progress)
    if options.json:
        say(json.dumps(pulled))
        return 0
    _print(pulled["updates"])
    if pulled["updates"]:
        say(f"To continue from here: --since {pulled['cursor']}")
    else:
        say("No updates." if options.since is None else "No updates since.")
    return 0


def run_queue(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    targets = _targets(ask_or_do(settings, "bridge-queue", {}, show_progress), options.target)
    shown_whole = options.target is not None and not is_agent(settings.home)  # texts are for the owner
    args = {"target": options.target}
    listed = ask_or_do(settings, "bridge-messages", args, show_progress) if shown_whole else {}
    if options.json:
        say(json.dumps({"targets": targets, **listed}))
        return 0
    if not targets:
        say(NO_TARGETS)
        return 0
    _show_targets(targets, listed.get("messages", []))
    return 0


def _show_targets(targets: dict[str, dict[str, Any]], messages: list[dict[str, Any]]) -> None:
    show_table([HEADINGS, *(_row(name, target) for name, target in targets.items())], whole=("TARGET", "LAST SEEN"))
    if messages:
        say("")
        show_table([MESSAGE_HEADINGS, *map(_message_row, messages)], whole=("ID", "SENT"))


def run_tail(options: argparse.Namespace) -> int:
    """Follow updates as they happen, across restarts of the daemon."""
    settings = settings_of(options)
    since: dict[str, str] = {}
    gone = False
    while True:
        try:
            first = not since
            for target in _targets(ask_daemon(settings, "bridge-queue"), options.target):
                since.setdefault(target, iso(int(time.time() * 1000) - HOUR_MS))
            news = _news(ask_daemon, settings, since)
            _print(news[-RECENT:] if first else news, of_one=options.target is not None)
            gone = False
        except NoDaemon:
            if not since:
                raise
            if not gone:
                say("The daemon is not running; waiting for it.", file=sys.stderr, flush=True)
            gone = True
        time.sleep(FOLLOW_SECONDS)


def _targets(status: dict[str, Any], only: str | None) -> dict[str, dict[str, Any]]:
    targets: dict[str, dict[str, Any]] = status["targets"]
    if only is None:
        return targets
    if only not in targets:
        raise NotFound(f"unknown target: {shown(only)}.", recovery="`holdfast inbox` lists them.")
    return {only: targets[only]}


def _row(name: str, target: dict[str, Any]) -> tuple[str, ...]:
    names = ("pending", "in_progress", "dead_letters", "held", "last_seen", "session_id", "current_task")
    seen = {"last_seen": local(target["last_seen"])} if "last_seen" in target else {}
    return (shown(name), *(shown(str((target | seen).get(key, "-")), MAX_CELL) for key in names))


def _message_row(message: dict[str, Any]) -> tuple[str, ...]:
    urgency = "" if message["priority"] == "normal" else f", {message['priority']}"
    sent, text = local(message["created_at"]), _line(message["text"])
    state = f"{STATES[message['status']]}{urgency}"
    return (state, shown(message["id"], MAX_LINE), sent, shown(message["from"], MAX_CELL), text)


def _line(text: str) -> str:
    """Return the beginning of a text on one line."""
    return shown(" ".join(text.split()), MAX_TEXT)


def _print(updates: Iterable[Update], *, of_one: bool = True) -> None:
    for update in updates:
        heading = [local(update["created_at"]), *([] if of_one else [shown(update["target"])]), update["type"]]
        source = [f"from {shown(update['from'], MAX_LINE)}"] if "from" in update else []
        say("  ".join([*heading, shown(update["message_id"] or "-", MAX_LINE), *source]), flush=True)
        if "question" in update:
            say(f"    > {_line(update['question'])}", flush=True)
        for line in str(update["content"]).splitlines():
            say(f"    {shown(line.replace(EMOJI, ''), MAX_LINE)}", flush=True)
