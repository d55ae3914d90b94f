"""`holdfast demo`: half a minute that shows what Holdfast is for."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from holdfast.cli.control import ask_daemon
from holdfast.config import Settings
from holdfast.terminal import write_own

ANSWER_SECONDS = 10.0
WIDEST = 100
PLAIN_WIDTH = 80

DESCRIPTION = """\
An agent records its reasoning and is killed with -9; so is the daemon. A new agent starts in the same project and is
told everything. All of it real: processes, kills, store. It plays in a directory of its own, offline, beside whatever
runs already, and leaves nothing behind. Exit status: 0 when everything came back, 1 when it did not.
"""
EXAMPLES = """\
examples:
  holdfast demo             at reading speed, about half a minute
  holdfast demo --fast      without the pauses
  holdfast demo --keep      leave the data directory, and say where it is
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "demo",
        help="watch an agent and the daemon being killed, and the work come back (30 s, offline)",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--fast", action="store_true", help="without pauses for reading")
    parser.add_argument("--keep", action="store_true", help="leave the data directory and the project, and print where")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Play the demo."""
    from holdfast.demo.picture import letters_for
    from holdfast.demo.stage import Stage
    from holdfast.demo.story import Screen, play

    on_terminal = sys.stdout.isatty()
    coloured = on_terminal and not os.environ.get("NO_COLOR")
    screen = Screen(
        say=_tell,
        pause=lambda seconds: None if options.fast else time.sleep(seconds),
        width=min(shutil.get_terminal_size().columns, WIDEST) if on_terminal else PLAIN_WIDTH,
        letters=letters_for(sys.stdout.encoding),
        bold=lambda text: f"\x1b[1m{text}\x1b[0m" if coloured else text,
    )
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _ended)
    with Stage(_ask, os.environ, keep=options.keep) as stage:
        screen.say("Real processes in a throw-away directory; nothing of yours is touched. Ctrl-C ends it.")
        play(stage, screen)
    print(_farewell(stage.home, options.keep), flush=True)
    return 0


def _ask(settings: Settings, name: str, args: dict[str, Any]) -> dict[str, Any]:
    return ask_daemon(settings, name, args, timeout=ANSWER_SECONDS)


def _tell(text: str) -> None:
    """Print what is all our own, down to the project that it plays in, in bold where that is meant."""
    encoding = sys.stdout.encoding or "utf-8"
    write_own(f"{text}\n".encode(encoding, "replace").decode(encoding), sys.stdout)
    sys.stdout.flush()


def _ended(number: int, frame: FrameType | None) -> NoReturn:
    """End as after Ctrl-C: everything is put away first."""
    sys.exit(128 + number)


def _farewell(home: Path, keep: bool) -> str:
    left = f"\n   Kept: {home} (look around with `holdfast --help` and HOLDFAST_HOME={home})" if keep else ""
    return f"{left}\n   For your own agent: `holdfast setup claude`. To check it: `holdfast doctor`."
