"""`holdfast teams ask`, `wait`, `cancel`, `status`, `history` and `reset`: conversations with teams, for people."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from holdfast.cli.common import (
    agreed,
    described_parser,
    given_text,
    is_person,
    settings_of,
    show_progress,
)
from holdfast.cli.control import ask_daemon, ask_or_do
from holdfast.cli.table import show_table
from holdfast.config import Settings
from holdfast.errors import HoldfastError, NoDaemon
from holdfast.ids import random_id
from holdfast.relay import place
from holdfast.teams.config_file import TeamsFile
from holdfast.teams.project_folders import project_folders
from holdfast.text.terminal import one_line, quoted_block, say, write_own
from holdfast.times import local

WAIT_MS = 20_000
"""How long the daemon is asked to wait at a time: it does not notice when this command is gone."""
AGAIN_SECONDS = 0.5
SHORT_ID = 8
MAX_PROGRESS_WIDTH = 100
MAX_CELL = 40

ASK = """\
Ask a team's agent a question, as you, and wait for the answer, which is printed. The conversation goes on where it was.
A daemon is started if none is running. Ctrl-C ends the waiting, not the work.

example:
  holdfast teams ask backend "Which endpoints are there?"

exit status: 0 answered; 1 failed, cancelled or not answered yet
"""
WAIT = """\
Go on waiting for the answer to an earlier question, and print it.

example:
  holdfast teams wait 3f2a91c0
"""
CANCEL = """\
Cancel a question that is not answered yet; a turn under way is interrupted.

example:
  holdfast teams cancel 3f2a91c0
"""
STATUS = """\
Show the teams with their processes and queues, and every question that is waiting or being worked on.

example:
  holdfast teams status backend
"""
HISTORY = """\
Show what was asked and answered, the latest last; without a team, list all conversations.

examples:
  holdfast teams history                         who talked with whom
  holdfast teams history backend                 your own conversation with backend
  holdfast teams history backend --from mobile   what mobile asked it
"""
RESET = """\
Let the next question to a team begin a fresh conversation. The earlier one stays on disk.

example:
  holdfast teams reset backend
"""


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    ask = described_parser(verbs, "ask", ASK, "ask a team a question and wait for the answer")
    ask.add_argument("team", metavar="TEAM", help="as `holdfast teams list` shows it")
    ask.add_argument("words", metavar="QUESTION", nargs="+", help="the question; - reads it from stdin")
    _add_conversation(ask)
    ask.add_argument("--temporary", action="store_true", help="in a conversation of its own, archived when answered")
    _add_waiting(ask)
    ask.set_defaults(run=run_ask)

    wait = described_parser(verbs, "wait", WAIT, "continue waiting for an answer")
    wait.add_argument("id", metavar="ASK", help="its id; the first eight characters are enough")
    _add_waiting(wait)
    wait.set_defaults(run=run_wait)

    cancel = described_parser(verbs, "cancel", CANCEL, "cancel a question that is not answered yet")
    cancel.add_argument("id", metavar="ASK", help="its id; the first eight characters are enough")
    _add_json(cancel)
    cancel.set_defaults(run=run_cancel)

    status = described_parser(verbs, "status", STATUS, "show teams, their queues, and questions under way")
    status.add_argument("team", metavar="TEAM", nargs="?", help="only this one")
    _add_json(status)
    status.set_defaults(run=run_status)

    history = described_parser(verbs, "history", HISTORY, "show what was asked and answered")
    history.add_argument("team", metavar="TEAM", nargs="?", help="which team was asked (default: list all)")
    _add_conversation(history)
    history.add_argument("--limit", metavar="N", type=int, default=20, help="how many questions (default: 20)")
    _add_json(history)
    history.set_defaults(run=run_history)

    reset = described_parser(verbs, "reset", RESET, "begin a fresh conversation with a team")
    reset.add_argument("team", metavar="TEAM", help="as `holdfast teams list` shows it")
    _add_conversation(reset)
    _add_json(reset)
    reset.set_defaults(run=run_reset)


def _add_conversation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="sender", metavar="TEAM", help="of this team (default: your own)")
    parser.add_argument("--thread", metavar="NAME", help="a conversation besides the main one")


def _add_waiting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        help="how long to wait; 0: not at all (default: until answered)",
    )
    _add_json(parser)


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text} is not a number of seconds, 0 or more")


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run_ask(options: argparse.Namespace) -> int:
    """Ask a team, and wait."""
    settings = settings_of(options)
    offer_folder(settings, options.team)
    question = given_text(options.words, "QUESTION")
    args = {"team": options.team, "question": question, "temporary": options.temporary, "key": random_id()}
    _start_daemon(options, settings)
    # Asked again with the same key if the daemon ends before it says that it has it: it takes effect once.
    asked = _patiently(settings, "teams-ask", {**args, "from": options.sender, "thread": options.thread})
    return _wait(options, settings, asked["askId"])


def run_wait(options: argparse.Namespace) -> int:
    """Wait for an answer."""
    settings = settings_of(options)
    _start_daemon(options, settings)
    return _wait(options, settings, options.id)


def offer_folder(settings: Settings, name: str) -> None:
    """Make a project folder of that name a team, if there is no such team and a person agrees."""
    file = TeamsFile(settings.home)
    projects = file.projects()
    if name in projects or not is_person(settings.home):
        return
    alike = [one for one in project_folders(os.environ, projects) if name in (one.name, one.project.name)]
    if len(alike) == 1 and agreed(
        settings.home, "add a team", f"There is no team {name}. Let your {alike[0].agent} in {alike[0].project} be it?"
    ):
        file.confirm([file.add(name, alike[0].project, agent=alike[0].agent)])


def _start_daemon(options: argparse.Namespace, settings: Settings) -> None:
    """Have a daemon run, as an agent that starts does; only a daemon runs agents."""
    try:
        ask_daemon(settings, "status")
    except NoDaemon:
        from holdfast.cli.doctor import surroundings
        from holdfast.doctor.daemon import start

        Path(place.stopped_marker(str(settings.home))).unlink(missing_ok=True)
        start(surroundings(options))


def _patiently(
    settings: Settings, name: str, args: dict[str, Any], progress: Any = None, until: float = math.inf
) -> dict[str, Any]:
    """Have the daemon run a command that may be repeated; wait for the next daemon if this one ends, until then."""
    told = False
    while True:
        try:
            return ask_daemon(settings, name, args, progress=progress, timeout=None)
        except NoDaemon:
            if time.monotonic() >= until:
                raise
            if not told:
                say("The daemon is not running; waiting for it. `holdfast serve` starts one.", file=sys.stderr)
            told = True
            time.sleep(AGAIN_SECONDS)


def _wait(options: argparse.Namespace, settings: Settings, ask_id: str) -> int:
    began = time.monotonic()
    until = math.inf if options.timeout is None else began + options.timeout
    line = _ProgressLine(began)
    try:
        while True:
            left = int(min(WAIT_MS, max(0, (until - time.monotonic()) * 1000)))
            told = _patiently(settings, "teams-wait", {"id": ask_id, "timeout": left}, line.show, until)
            ask_id = told["askId"]
            if told["status"] != "pending" or left < WAIT_MS:
                break
    except KeyboardInterrupt:
        line.end()
        say(f"It is not cancelled, and its answer will wait. {_how_to_go_on(ask_id)}", file=sys.stderr)
        return 130
    except NoDaemon as error:
        line.end()
        say(f"Not answered yet. {error} {_how_to_go_on(ask_id)}", file=sys.stderr)
        return 1
    line.end()
    if options.json:
        say(json.dumps(told))
    elif told["status"] == "answered":
        print(told["response"])
        if "note" in told:
            say(told["note"], file=sys.stderr)
    elif told["status"] == "pending":
        say(f"Not answered yet. {_how_to_go_on(ask_id)}", file=sys.stderr)
    elif told["status"] == "cancelled":
        say("It was cancelled.", file=sys.stderr)
    else:
        say(f"It failed: {told.get('message', '')} ({told.get('error')})", file=sys.stderr)
    return 0 if told["status"] == "answered" else 1


def _how_to_go_on(ask_id: str) -> str:
    return f"Go on waiting: `holdfast teams wait {ask_id}`. Cancel it: `holdfast teams cancel {ask_id}`."


class _ProgressLine:
    """One line of a terminal that says what an ask is doing."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._shown = False

    def show(self, _share: float, message: str) -> None:
        """Show what happens."""
        if sys.stderr.isatty():
            # One column less than there are: in the last one a terminal begins another line.
            width = min(MAX_PROGRESS_WIDTH, shutil.get_terminal_size().columns - 1)
            text = f"{time.monotonic() - self._began:4.0f} s  {one_line(message)}"[:width]
            write_own(f"\r{text:{width}}", sys.stderr)
            sys.stderr.flush()
            self._shown = True

    def end(self) -> None:
        """Leave the line."""
        if self._shown:
            write_own("\n", sys.stderr)


def run_cancel(options: argparse.Namespace) -> int:
    """Cancel an ask."""
    told = ask_or_do(settings_of(options), "teams-cancel", {"id": options.id}, show_progress)
    if options.json:
        say(json.dumps(told))
    else:
        say("Cancelled." if told["status"] == "cancelled" else f"Not cancelled: it was {told['status']} before.")
    return 0 if told["status"] == "cancelled" else 1


def run_status(options: argparse.Namespace) -> int:
    """Show teams and the asks under way."""
    settings = settings_of(options)
    status = ask_or_do(settings, "teams-status", {"team": options.team}, show_progress)
    asks = ask_or_do(settings, "teams-asks", {}, show_progress)["asks"]
    asks = [one for one in asks if options.team in (None, one["toTeam"], one.get("fromTeam"))]
    if options.json:
        say(json.dumps({**status, "asks": asks}))
        return 0
    columns = ("processes", "busy", "waiting", "running")
    rows = [
        (one["team"], *(str(one[name]) for name in columns), str(len(one.get("approvals", ()))), one.get("fault", "ok"))
        for one in status["teams"]
    ]
    if rows:
        show_table([("TEAM", *map(str.upper, columns), "APPROVALS", "STATE"), *rows])
        say(f"{status['processes']} processes are running.")
    elif "faults" not in status:
        say("There are no teams yet. `holdfast teams add` lists projects that could be one.")
    for fault in status.get("faults", ()):
        say(f"Fault in teams.json: {fault}")
    for team in status["teams"]:
        for approval in team.get("approvals", ()):
            say(f"{team['team']} waits to be allowed {approval['tool']}: `holdfast approve {approval['id']}`.")
    if asks:
        print()
        show_table([("ASK", "SINCE", "STATE", "FROM", "TO", "QUESTION"), *map(_ask_row, asks)], whole=("ASK", "SINCE"))
    return 0


def _ask_row(ask: dict[str, Any]) -> tuple[str, ...]:
    question = one_line(ask["question"])
    return (ask["askId"][:SHORT_ID], local(ask["askedAt"]), ask["status"], _sender(ask), _team(ask), question)


def _sender(conversation: dict[str, Any]) -> str:
    return str(conversation.get("fromTeam", "you"))


def _team(conversation: dict[str, Any]) -> str:
    thread = conversation["threadId"]
    return conversation["toTeam"] if thread == "main" else f"{conversation['toTeam']} ({thread[:MAX_CELL]})"


def run_history(options: argparse.Namespace) -> int:
    """Show a conversation, or list them."""
    settings = settings_of(options)
    if options.team is None:
        return _list_conversations(options, settings)
    if not 1 <= options.limit <= 10_000:
        raise HoldfastError("--limit must be 1 to 10000.")
    args = {"team": options.team, "from": options.sender, "thread": options.thread, "limit": options.limit}
    told = ask_or_do(settings, "teams-history", args, show_progress)
    if options.json:
        say(json.dumps(told))
        return 0
    for ask in reversed(told["asks"]):
        say(f"{local(ask['askedAt'])}  {_sender(told['conversation'])}  ({ask['askId'][:SHORT_ID]})")
        print(quoted_block(ask["question"]))
        say(f"{told['conversation']['toTeam']}: {' '.join(filter(None, (ask['status'], ask.get('error'))))}")
        if (told_back := ask.get("response", ask.get("message"))) is not None:
            print(quoted_block(told_back))
    return 0


def _list_conversations(options: argparse.Namespace, settings: Settings) -> int:
    found = ask_or_do(settings, "teams-conversations", {"team": options.sender}, show_progress)
    if options.json:
        say(json.dumps(found))
        return 0
    rows = [
        (_sender(one), _team(one), str(one["messageCount"]), one["status"], local(one["lastUsedAt"]), one["sessionId"])
        for one in found["conversations"]
    ]
    if rows:
        show_table([("FROM", "TO", "MESSAGES", "STATE", "LAST USED", "SESSION"), *rows], whole=("LAST USED",))
    else:
        say("There are no conversations yet. `holdfast teams ask TEAM QUESTION` begins one.")
    return 0


def run_reset(options: argparse.Namespace) -> int:
    """Let the next ask begin a fresh conversation."""
    args = {"team": options.team, "from": options.sender, "thread": options.thread}
    told = ask_or_do(settings_of(options), "teams-reset", args, show_progress)
    if options.json:
        say(json.dumps(told))
    else:
        say(f"The next question to {_team(told['conversation'])} begins a fresh conversation.")
    return 0
