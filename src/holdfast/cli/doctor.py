"""`holdfast doctor`: checks the whole chain as it is installed, and names a repair for each fault."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.common import add_home
from holdfast.cli.control import ask_daemon
from holdfast.config import read_settings
from holdfast.doctor.findings import Finding, Mark
from holdfast.doctor.surroundings import Surroundings
from holdfast.errors import BadInput
from holdfast.relay.main import BadUsage, read_options
from holdfast.relay.spawn import SESSION_NAMES
from holdfast.text.terminal import write_own
from holdfast.version import __version__

if TYPE_CHECKING:
    from holdfast.doctor.chain import Diagnosis

COLOURS = {Mark.OK: "32", Mark.NOTE: "33", Mark.FAULT: "31"}
MARGIN = 20
"""Columns before the text: the mark and the link's name."""

DESCRIPTION = """\
Check the whole chain from the agent to the store, as it is installed: the data directory, the key, the store, the
daemon, a real relay, every hook (by running it), the agent's configuration, Serena, Telegram. A daemon is started if
none is running, as the first agent would do. Exit status: 0 if there is no fault (notes do not count), 1 if there is.
"""
EXAMPLES = """\
examples:
  holdfast doctor           one line per link, with the repair of each fault
  holdfast doctor --fix     also make the repairs that are safe, and say which
  holdfast doctor --json    the same as JSON
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "doctor",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--fix", action="store_true", help="make the safe repairs: permissions, daemon, hooks")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    add_home(parser)
    parser.set_defaults(run=examine)


def run(arguments: Sequence[str] = ()) -> int:
    """Run `holdfast doctor` with these arguments, for a command that ends with it."""
    parser = argparse.ArgumentParser()
    add_to(parser.add_subparsers())
    return examine(parser.parse_args(["doctor", *arguments]))


def examine(options: argparse.Namespace) -> int:
    """Check everything and print the findings."""
    # Imported late: it imports the packages of the store and the chats, which other commands do not need.
    from holdfast.doctor.chain import Diagnosis, diagnose

    lines = _Lines()
    show, show_repairs = (_print_nothing, _print_nothing) if options.json else (lines.show, lines.show_repairs)
    try:
        diagnosis = diagnose(surroundings(options), fix=options.fix, show=show, show_repairs=show_repairs)
    except BadInput as error:
        # Without settings there is nothing else to check.
        finding = Finding(Mark.FAULT, error.message, error.recovery or "Correct or unset it.", link="settings")
        show([finding])
        diagnosis = Diagnosis([finding])
    if options.json:
        print(json.dumps(_document(diagnosis), indent=1))
    else:
        print(_verdict(diagnosis, fixing=options.fix))
    return 1 if diagnosis.faults else 0


def surroundings(options: argparse.Namespace) -> Surroundings:
    """Return what a check may use, for the data directory that a command names."""
    from holdfast.identity.worktree import worktree_of

    settings = read_settings(home=options.home)  # even of another user: that is one of the findings
    here = worktree_of(Path.cwd())

    try:
        timeout = read_options([]).patience
    except BadUsage as error:
        raise BadInput("HOLDFAST_DAEMON_WAIT", str(error).partition(": ")[2].rstrip(".")) from error

    def ask(name: str, args: dict[str, Any]) -> dict[str, Any]:
        return ask_daemon(settings, name, args)

    # Processes started here use the same data directory, and must not count as the agent that may have called us.
    ours = {name: value for name, value in os.environ.items() if name not in SESSION_NAMES}
    env = {**ours, "HOLDFAST_HOME": str(settings.home)}
    return Surroundings(settings, env, here.path if here is not None else Path.cwd(), ask, timeout=timeout)


class _Lines:
    """Prints findings as lines, coloured on a terminal."""

    def __init__(self) -> None:
        self._coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self._width = max(60, shutil.get_terminal_size().columns) if sys.stdout.isatty() else 10_000

    def show(self, findings: Iterable[Finding]) -> None:
        """Print findings, each with its repair below."""
        for finding in findings:
            self._line(f"{self._marked(finding.mark)}{finding.link:12} ", finding.text)
            if finding.repair is not None and finding.mark is not Mark.OK:
                self._line(" " * MARGIN, f"-> {finding.repair}")

    def show_repairs(self, repairs: Iterable[Finding]) -> None:
        """Print the repairs that were made."""
        for repair in repairs:
            self._line(f"{'fixed' if repair.mark is Mark.OK else 'failed':7}{repair.link:12} ", repair.text)

    def _line(self, before: str, text: str) -> None:
        rest = textwrap.wrap(text, self._width - MARGIN, break_long_words=False, break_on_hyphens=False) or [""]
        write_own(before, sys.stdout)
        print(("\n" + " " * MARGIN).join(rest), flush=True)

    def _marked(self, mark: Mark) -> str:
        word = f"{mark.value:7}"
        return f"\x1b[{COLOURS[mark]}m{word}\x1b[0m" if self._coloured else word


def _print_nothing(findings: Iterable[Finding]) -> None:
    """Print nothing: the JSON document comes at the end."""


def _verdict(diagnosis: Diagnosis, *, fixing: bool) -> str:
    faults = diagnosis.faults
    if not faults:
        notes = sum(1 for finding in diagnosis.findings if finding.mark is Mark.NOTE)
        return f"\nNo faults; {notes} notes." if notes else "\nNo faults."
    count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    fixable = sum(1 for finding in faults if finding.fix is not None)
    if fixing or not fixable:
        return f"\n{count}; see the lines with -> for what to do."
    repairable = ("it" if fixable == 1 else "them") if fixable == len(faults) else f"{fixable} of them"
    return f"\n{count}. `holdfast doctor --fix` repairs {repairable}."


def _document(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "ok": not diagnosis.faults,
        "version": __version__,
        "findings": [
            {
                "link": finding.link,
                "mark": finding.mark.value,
                "text": finding.text,
                **({"repair": finding.repair} if finding.repair and finding.mark is not Mark.OK else {}),
                **({"fixable": True} if finding.fix is not None else {}),
            }
            for finding in diagnosis.findings
        ],
        "repairs": [
            {"link": repair.link, "done": repair.mark is Mark.OK, "text": repair.text} for repair in diagnosis.repairs
        ],
    }
