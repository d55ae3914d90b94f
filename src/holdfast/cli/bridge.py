"""`holdfast send`, `cancel`, `retry` and `bridge`: messages for a target."""

from __future__ import annotations

import argparse
import sys

from holdfast.cli import bridge_chat, bridge_init
from holdfast.cli.common import add_home, described_parser, given_text, settings_of, show_progress
from holdfast.cli.control import ask_or_do
from holdfast.teams.config_fields import shown
from holdfast.text.terminal import say

MAX_LINE = 10_000
SEND = """\
Queues a message for a target's agent, even while it is busy or gone; a target is the name of a team. It gets the
message with its next turn, and `holdfast inbox TARGET` shows its answer.

examples:
  holdfast send homelab "Fix the DNS record"
  holdfast send homelab --stop "Wrong branch"     stop what it is doing
  git diff | holdfast send homelab -              the message from stdin

exit status: 0 queued; 1 not queued
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    send = described_parser(commands, "send", SEND)
    send.add_argument("target", metavar="TARGET", help="as `holdfast inbox` shows it")
    send.add_argument("words", metavar="MESSAGE", nargs="+", help="the message; - reads it from stdin")
    how = send.add_mutually_exclusive_group()
    how.add_argument("--urgent", dest="priority", action="store_const", const="urgent", help="ahead of all others")
    how.add_argument("--stop", dest="priority", action="store_const", const="stop", help="stop what the agent is doing")
    which = send.add_mutually_exclusive_group()
    which.add_argument("--id", metavar="ID", help="the message's id; sending it again is a duplicate")
    which.add_argument("--replace", metavar="ID", help="edit this waiting message instead of sending another")
    send.set_defaults(run=run_send, priority=None)

    for name, run, text in (
        ("cancel", run_cancel, "Cancel a message that is still waiting."),
        ("retry", run_retry, "Queue a message again that is a dead letter, failed or expired."),
    ):
        change = commands.add_parser(name, description=text)
        change.add_argument("target", metavar="TARGET", help="as `holdfast inbox` shows it")
        change.add_argument("id", metavar="ID", help="the message's id, as `holdfast inbox TARGET` shows it")
        add_home(change)
        change.set_defaults(run=run)

    bridge = commands.add_parser("bridge")
    verbs = bridge.add_subparsers(metavar="<what>", title="what", required=True)
    bridge_init.add_to(verbs)
    bridge_chat.add_to(verbs)
    for decision, text in (
        ("fork", "let a copy of its conversation answer for an agent that is idle at its terminal"),
        ("wait", "let messages wait until somebody writes at the terminal"),
    ):
        decide = verbs.add_parser(decision, help=text)
        decide.add_argument("target", metavar="TARGET", help="as `holdfast inbox` shows it")
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
        if why.startswith("unknown target"):
            say(
                "`holdfast inbox` lists the targets, `holdfast teams add NAME --project DIR` adds one.", file=sys.stderr
            )
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
