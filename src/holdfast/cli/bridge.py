"""`holdfast send`, `cancel`, `retry`, `queue`, `pull`, `tail`, `bridge`: messages for a target, and updates from it."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.cli import bridge_chat, bridge_init
from holdfast.cli.common import add_home, given_text, is_agent, settings_of, show_progress
from holdfast.cli.control import ask_daemon, ask_or_do
from holdfast.errors import NoDaemon, NotFound
from holdfast.teams.config_fields import shown
from holdfast.text.terminal import say
from holdfast.times import iso, local

FOLLOW_SECONDS = 1.0
RECENT_MS = 3_600_000
"""How far `tail` looks back when it starts."""
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

Update = dict[str, Any]


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    send = commands.add_parser("send", help="queue a message for a target's agent")
    send.add_argument("target", metavar="TARGET", help="as `holdfast queue` shows it")
    send.add_argument("words", metavar="MESSAGE", nargs="+", help="the message; - reads it from stdin")
    how = send.add_mutually_exclusive_group()
    how.add_argument("--urgent", dest="priority", action="store_const", const="urgent", help="ahead of all others")
    how.add_argument("--stop", dest="priority", action="store_const", const="stop", help="stop what the agent is doing")
    which = send.add_mutually_exclusive_group()
    which.add_argument("--id", metavar="ID", help="the message's id; sending it again is a duplicate")
    which.add_argument("--replace", metavar="ID", help="edit this waiting message instead of sending another")
    add_home(send)
    send.set_defaults(run=run_send, priority=None)

    for name, run, text in (
        ("cancel", run_cancel, "cancel a message that is still waiting"),
        ("retry", run_retry, "queue a message again that is a dead letter, failed or expired"),
    ):
        change = commands.add_parser(name, help=text)
        change.add_argument("target", metavar="TARGET", help="as `holdfast queue` shows it")
        change.add_argument("id", metavar="ID", help="the message's id, as `holdfast queue TARGET` shows it")
        add_home(change)
        change.set_defaults(run=run)

    pull = commands.add_parser("pull", help="show what happened at a target: replies, restarts, task changes")
    pull.add_argument("target", metavar="TARGET", help="as `holdfast queue` shows it")
    pull.add_argument("--since", metavar="CURSOR", help="the last cursor, or a time such as 2026-01-31T12:00:00Z")
    pull.add_argument("--json", action="store_true", help="print it as JSON")
    add_home(pull)
    pull.set_defaults(run=run_pull)

    queue = commands.add_parser("queue", help="show every target: messages waiting, in progress, and its agent")
    queue.add_argument("target", metavar="TARGET", nargs="?", help="only this one, and its messages")
    queue.add_argument("--json", action="store_true", help="print it as JSON")
    add_home(queue)
    queue.set_defaults(run=run_queue, for_agents=True)

    tail = commands.add_parser("tail", help="follow what happens at a target until Ctrl-C")
    tail.add_argument("target", metavar="TARGET", nargs="?", help="only this one (default: all)")
    add_home(tail)
    tail.set_defaults(run=run_tail)

    bridge = commands.add_parser("bridge", help="messages for a project's agent: init, chat, fork, wait")
    verbs = bridge.add_subparsers(metavar="<what>", title="what", required=True)
    bridge_init.add_to(verbs)
    bridge_chat.add_to(verbs)
    for decision, text in (
        ("fork", "let a copy of its conversation answer for an agent that is idle at its terminal"),
        ("wait", "let messages wait until somebody writes at the terminal"),
    ):
        decide = verbs.add_parser(decision, help=text)
        decide.add_argument("target", metavar="TARGET", help="as `holdfast queue` shows it")
        add_home(decide)
        decide.set_defaults(run=run_decide, decision=decision)


def run_send(options: argparse.Namespace) -> int:
    args = {
        "target": options.target,
        "message": given_text(options.words, "MESSAGE"),
        "priority": options.priority,
        "id": options.id,
        "replaces": options.replace,
    }
    sent = ask_or_do(settings_of(options), "bridge-send", args, show_progress)
    if not sent["queued"]:
        why = sent["reason"].removeprefix("not waiting: ")
        say(f"Not {'queued' if options.replace is None else 'edited'}: {shown(why)}.", file=sys.stderr)
        return 1
    how = "Queued" if options.replace is None else "Edited; it is still waiting"
    say(f"{how} for {shown(sent['target'])} as {shown(sent['id'], MAX_LINE)}.")
    return 0


def run_cancel(options: argparse.Namespace) -> int:
    args = {"target": options.target, "id": options.id}
    ended = ask_or_do(settings_of(options), "bridge-cancel", args, show_progress)
    already = "already " if ended.get("repeated") else ""
    say(f"Message {shown(ended['id'], MAX_LINE)} is {already}cancelled; no agent had it.")
    return 0


def run_retry(options: argparse.Namespace) -> int:
    args = {"target": options.target, "id": options.id}
    queued = ask_or_do(settings_of(options), "bridge-retry", args, show_progress)
    say(f"Message {shown(queued['id'], MAX_LINE)} is waiting for {shown(queued['target'])} again.")
    return 0


def run_decide(options: argparse.Namespace) -> int:
    args = {"target": options.target, "decision": options.decision}
    say(ask_or_do(settings_of(options), "bridge-decide", args, show_progress)["answer"])
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
    settings = settings_of(options)
    targets = _targets(ask_or_do(settings, "bridge-queue", {}, show_progress), options.target)
    shown_whole = options.target is not None and not is_agent(settings.home)  # texts are for the owner
    args = {"target": options.target}
    listed = ask_or_do(settings, "bridge-messages", args, show_progress) if shown_whole else {}
    if options.json:
        say(json.dumps({"targets": targets, **listed}))
        return 0
    if not targets:
        say("There are no targets yet; each team is one. Add a team with `holdfast teams add NAME --project DIR`.")
        return 0
    _print_table([HEADINGS, *(_row(name, target) for name, target in targets.items())])
    if messages := listed.get("messages"):
        say("")
        _print_table([MESSAGE_HEADINGS, *map(_message_row, messages)])
    return 0


def run_tail(options: argparse.Namespace) -> int:
    """Follow updates as they happen, across restarts of the daemon."""
    settings = settings_of(options)
    since: dict[str, str] = {}
    gone = False
    while True:
        try:
            first = not since
            for target in _targets(ask_daemon(settings, "bridge-queue"), options.target):
                since.setdefault(target, iso(int(time.time() * 1000) - RECENT_MS))
            news: list[Update] = []
            while (page := ask_daemon(settings, "bridge-follow", {"since": since}))["updates"]:
                news += page["updates"]
                since |= page["cursors"]
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
        raise NotFound(f"unknown target: {shown(only)}.", recovery="`holdfast queue` lists them.")
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


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _print(updates: Iterable[Update], *, of_one: bool = True) -> None:
    for update in updates:
        heading = [local(update["created_at"]), *([] if of_one else [shown(update["target"])]), update["type"]]
        source = [f"from {shown(update['from'], MAX_LINE)}"] if "from" in update else []
        say("  ".join([*heading, shown(update["message_id"] or "-", MAX_LINE), *source]), flush=True)
        if "question" in update:
            say(f"    > {_line(update['question'])}", flush=True)
        for line in str(update["content"]).splitlines():
            say(f"    {shown(line.replace(EMOJI, ''), MAX_LINE)}", flush=True)
