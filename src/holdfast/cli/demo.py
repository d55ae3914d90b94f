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
PICTURE_WIDTH = 96
NAMES = ("killed", "cut-off")
"""The demos; the first is played if none is named."""

DESCRIPTION = """\
killed: an agent records its reasoning and is killed with -9; so is the daemon. A new agent starts in the same project
and is told everything. cut-off: an agent is killed in the middle of an edit, and another one finishes its work; the
agents are played by a script, the rest is real. Both run offline in a directory of their own, next to whatever is
already running, and leave nothing behind. Exit status: 0 if everything came back, 1 if not.
"""
EXAMPLES = """\
examples:
  holdfast demo             at reading speed, about half a minute
  holdfast demo cut-off     the other demo
  holdfast demo --fast      without the pauses
  holdfast demo --keep      keep the data directory, and print where it is
  holdfast demo --list      what demos there are
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "demo",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", choices=NAMES, default=NAMES[0], metavar="NAME", help=" or ".join(NAMES))
    parser.add_argument("--list", action="store_true", help="list the demos, and play none")
    parser.add_argument("--fast", action="store_true", help="without pauses for reading")
    parser.add_argument("--svg", action="store_true", help="print a picture of the terminal (SVG) instead of the text")
    parser.add_argument("--keep", action="store_true", help="keep the data directory and the project, and print where")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Play the demo."""
    from holdfast.demo.demos import DEMOS, perform
    from holdfast.demo.screen import Screen
    from holdfast.demo.tree import tree_lines_for

    if options.list:
        for name, demo in DEMOS.items():
            print(f"{name:8}  {demo.what}")
        return 0
    shown: list[str] = []
    is_bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and not options.svg
    screen = Screen(
        say=shown.append if options.svg else _tell,
        pause=_no_pause if options.svg or options.fast else time.sleep,
        width=PICTURE_WIDTH if options.svg else min(shutil.get_terminal_size().columns, MAX_WIDTH),
        tree_lines=tree_lines_for("utf-8" if options.svg else sys.stdout.encoding),
        bold=_bold if is_bold else str,
    )
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _ended)
    stage = perform(options.name, screen, _ask, os.environ, keep=options.keep)
    if options.svg:
        from holdfast.demo.picture import pictured

        print(pictured(shown, options.name, DEMOS[options.name].pictured), end="", flush=True)
    else:
        print(_farewell(stage.home, options.keep), flush=True)
    return 0


def _ask(settings: Settings, name: str, args: dict[str, Any]) -> dict[str, Any]:
    return ask_daemon(settings, name, args, timeout=ANSWER_SECONDS)


def _no_pause(_seconds: float) -> None:
    """Go on at once."""


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m"


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
