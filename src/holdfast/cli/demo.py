"""`holdfast demo`: shows in half a minute what Holdfast is for."""

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
from holdfast.text.terminal import write_own

ANSWER_SECONDS = 10.0
MAX_WIDTH = 100
PLAIN_WIDTH = 80

DESCRIPTION = """\
An agent records its reasoning and is killed with -9; so is the daemon. A new agent starts in the same project and is
told everything. All of it is real: processes, kills, store. It runs offline in a directory of its own, next to
whatever is already running, and leaves nothing behind. Exit status: 0 if everything came back, 1 if not.
"""
EXAMPLES = """\
examples:
  holdfast demo             at reading speed, about half a minute
  holdfast demo --fast      without the pauses
  holdfast demo --keep      keep the data directory, and print where it is
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "demo",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--fast", action="store_true", help="without pauses for reading")
    parser.add_argument("--keep", action="store_true", help="keep the data directory and the project, and print where")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Play the demo."""
    from holdfast.demo.picture import tree_lines_for
    from holdfast.demo.stage import Stage
    from holdfast.demo.story import Screen, play

    on_terminal = sys.stdout.isatty()
    coloured = on_terminal and not os.environ.get("NO_COLOR")
    screen = Screen(
        say=_tell,
        pause=lambda seconds: None if options.fast else time.sleep(seconds),
        width=min(shutil.get_terminal_size().columns, MAX_WIDTH) if on_terminal else PLAIN_WIDTH,
        tree_lines=tree_lines_for(sys.stdout.encoding),
        bold=lambda text: f"\x1b[1m{text}\x1b[0m" if coloured else text,
    )
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _ended)
    with Stage(_ask, os.environ, keep=options.keep) as stage:
        screen.say("Real processes in a throwaway directory; your own data is not touched. Ctrl-C stops it.")
        play(stage, screen)
    print(_farewell(stage.home, options.keep), flush=True)
    return 0


def _ask(settings: Settings, name: str, args: dict[str, Any]) -> dict[str, Any]:
    return ask_daemon(settings, name, args, timeout=ANSWER_SECONDS)


def _tell(text: str) -> None:
    """Print the demo's own text, which may contain bold."""
    encoding = sys.stdout.encoding or "utf-8"
    write_own(f"{text}\n".encode(encoding, "replace").decode(encoding), sys.stdout)
    sys.stdout.flush()


def _ended(number: int, frame: FrameType | None) -> NoReturn:
    """Exit as after Ctrl-C, so that everything is cleaned up first."""
    sys.exit(128 + number)


def _farewell(home: Path, keep: bool) -> str:
    left = f"\n   Kept: {home} (look around with `holdfast --help` and HOLDFAST_HOME={home})" if keep else ""
    return f"{left}\n   For your own agent: `holdfast setup claude`. To check it: `holdfast doctor`."
