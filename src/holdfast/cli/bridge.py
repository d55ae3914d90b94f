"""`holdfast send`, `pull`, `queue` and `tail`: messages for a target's agent, and updates from it."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable
from typing import Any

from holdfast.cli import bridge_init
from holdfast.cli.common import add_home, settings_of, show_progress
from holdfast.cli.control import ask_daemon, ask_or_do
from holdfast.config import Settings
from holdfast.errors import BadInput, NoDaemon, NotFound
from holdfast.teams.config_fields import shown
from holdfast.text.terminal import say
from holdfast.times import iso

FOLLOW_SECONDS = 1.0
RECENT_MS = 3_600_000
"""How far `tail` looks back when it starts."""
RECENT = 10
MAX_LINE = 10_000
MAX_CELL = 40
HEADINGS = ("TARGET", "PENDING", "IN PROGRESS", "DEAD", "HELD", "LAST SEEN", "SESSION", "TASK")

Update = dict[str, Any]


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    send = commands.add_parser("send", help="queue a message for a target's agent")
    send.add_argument("target", metavar="TARGET", help="as `holdfast queue` shows it")
    send.add_argument("words", metavar="MESSAGE", nargs="+", help="the message; - reads it from stdin")
    how = send.add_mutually_exclusive_group()
    how.add_argument("--urgent", dest="priority", action="store_const", const="urgent", help="ahead of all others")
    how.add_argument("--stop", dest="priority", action="store_const", const="stop", help="stop what the agent is doing")
    send.add_argument("--id", metavar="ID", help="the message's id; sending it again is a duplicate")
    add_home(send)
    send.set_defaults(run=run_send, priority="normal")

    pull = commands.add_parser("pull", help="show what happened at a target: replies, restarts, task changes")
    pull.add_argument("target", metavar="TARGET", help="as `holdfast queue` shows it")
    pull.add_argument("--since", metavar="CURSOR", help="the last cursor, or a time such as 2026-01-31T12:00:00Z")
    pull.add_argument("--json", action="store_true", help="print it as JSON")
    add_home(pull)
    pull.set_defaults(run=run_pull)

    queue = commands.add_parser("queue", help="show every target: messages waiting, in progress, and its agent")
    queue.add_argument("target", metavar="TARGET", nargs="?", help="only this one")
    queue.add_argument("--json", action="store_true", help="print it as JSON")
    add_home(queue)
    queue.set_defaults(run=run_queue, for_agents=True)

    tail = commands.add_parser("tail", help="follow what happens at a target until Ctrl-C")
    tail.add_argument("target", metavar="TARGET", nargs="?", help="only this one (default: all)")
    add_home(tail)
    tail.set_defaults(run=run_tail)

    bridge = commands.add_parser("bridge", help="messages for a project's agent: init")
    bridge_init.add_to(bridge.add_subparsers(metavar="<what>", title="what", required=True))


def run_send(options: argparse.Namespace) -> int:
    args = {"target": options.target, "message": _message(options), "priority": options.priority, "id": options.id}
    sent = ask_or_do(settings_of(options), "bridge-send", args, show_progress)
    if not sent["queued"]:
        say(f"Not queued: {shown(sent['reason'])}.", file=sys.stderr)
        return 1
    say(f"Queued for {shown(sent['target'])} as {shown(sent['id'], MAX_LINE)}.")
    return 0


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
    targets = _targets(ask_or_do(settings_of(options), "bridge-queue", {}, show_progress), options.target)
    if options.json:
        say(json.dumps({"targets": targets}))
        return 0
    if not targets:
        say("There are no targets yet; each team is one. Add a team with `holdfast teams add NAME --project DIR`.")
        return 0
    rows = [HEADINGS, *(_row(name, target) for name, target in targets.items())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    for row in rows:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


def run_tail(options: argparse.Namespace) -> int:
    """Follow updates as they happen, across restarts of the daemon."""
    settings = settings_of(options)
    since: dict[str, str] = {}
    gone = False
    while True:
        try:
            for target in _targets(ask_daemon(settings, "bridge-queue"), options.target):
                first = target not in since
                since.setdefault(target, iso(int(time.time() * 1000) - RECENT_MS))
                found, since[target] = _news(settings, target, since[target])
                _print(found[-RECENT:] if first else found, target=None if options.target else target)
            gone = False
        except NoDaemon:
            if not since:
                raise
            if not gone:
                say("The daemon is not running; waiting for it.", file=sys.stderr, flush=True)
            gone = True
        time.sleep(FOLLOW_SECONDS)


def _news(settings: Settings, target: str, since: str) -> tuple[list[Update], str]:
    """Return all new updates and where to continue; a time stays one until there is an update."""
    updates: list[Update] = []
    while True:
        page = ask_daemon(settings, "bridge-pull", {"target": target, "since": since})
        if not page["updates"]:
            return updates, since
        updates += page["updates"]
        since = page["cursor"]


def _message(options: argparse.Namespace) -> str:
    words: list[str] = options.words
    text = sys.stdin.read() if words == ["-"] else " ".join(words)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadInput("MESSAGE", "must be UTF-8") from error
    return text


def _targets(status: dict[str, Any], only: str | None) -> dict[str, dict[str, Any]]:
    targets: dict[str, dict[str, Any]] = status["targets"]
    if only is None:
        return targets
    if only not in targets:
        raise NotFound(f"unknown target: {shown(only)}.", recovery="`holdfast queue` lists them.")
    return {only: targets[only]}


def _row(name: str, target: dict[str, Any]) -> tuple[str, ...]:
    names = ("pending", "in_progress", "dead_letters", "held", "last_seen", "session_id", "current_task")
    return (shown(name), *(shown(str(target.get(key, "-")), MAX_CELL) for key in names))


def _print(updates: Iterable[Update], target: str | None = None) -> None:
    for update in updates:
        heading = [update["created_at"], *([shown(target)] if target else []), update["type"]]
        source = [f"from {shown(update['from'], MAX_LINE)}"] if "from" in update else []
        say("  ".join([*heading, shown(update["message_id"] or "-", MAX_LINE), *source]), flush=True)
        for line in str(update["content"]).splitlines():
            say(f"    {shown(line, MAX_LINE)}", flush=True)
