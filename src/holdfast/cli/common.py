"""Shared by commands: the --home option and its settings, questions to a person, and a progress bar."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from holdfast.config import Settings, read_settings
from holdfast.errors import BadInput, HoldfastError
from holdfast.identity.managed import VARIABLE, runs_under_agent
from holdfast.process.home_lock import check_home_owner
from holdfast.text import clipped
from holdfast.text.terminal import one_line, say, write_own

BAR = 24


def add_home(parser: argparse.ArgumentParser) -> None:
    """Add the --home option."""
    parser.add_argument("--home", metavar="DIR", help="the data directory (HOLDFAST_HOME, default ~/.holdfast)")


def described_parser(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str, description: str
) -> argparse.ArgumentParser:
    """Add a command whose description is printed as it is written, with the --home option."""
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser(name, help=text, description=description, formatter_class=form)
    add_home(parser)
    return parser


def settings_of(options: argparse.Namespace) -> Settings:
    """Read the settings of a command; raises ForeignHome if the data directory belongs to another user."""
    settings = read_settings(home=options.home)
    check_home_owner(settings.home)
    return settings


def other_home(settings: Settings) -> str | None:
    """Return the data directory, if an agent or its hook would not find it by default."""
    return None if settings.home == read_settings({}).home else str(settings.home)


def is_agent(home: Path) -> bool:
    """Return whether a managed agent of this data directory, or a process it started, runs this command."""
    return VARIABLE in os.environ or runs_under_agent(os.getpid(), home)


def is_person(home: Path) -> bool:
    """Return whether a person is at the terminal and can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty() and not is_agent(home)


def agreed(home: Path, what: str, question: str) -> bool:
    """Ask a person at the terminal for a yes; raises without a terminal. No option answers this."""
    require_person(home, what)
    return input(f"{question} Type yes: ").strip().lower() == "yes"


def require_person(home: Path, what: str) -> None:
    """Refuse to `what` unless a person is at the terminal."""
    if not is_person(home):
        raise HoldfastError(
            f"Only a person at a terminal can {what}.",
            recovery="Run the command in a terminal, without redirecting its input or output.",
        )


def given_text(words: Sequence[str], field: str) -> str:
    """Return the text of a command's words; a single - reads it from stdin."""
    try:
        text = sys.stdin.buffer.read().decode() if list(words) == ["-"] else " ".join(words)
        text.encode()
    except UnicodeError as error:
        raise BadInput(field, "must be UTF-8") from error
    return text


def show_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns; the last column is cut at the edge of the screen."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]) - 1)]
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    for row in cells:
        line = "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
        say(clipped(line, room))


def show_progress(share: float, message: str) -> None:
    """Show a progress bar if stderr is a terminal."""
    if not sys.stderr.isatty():
        return
    filled = round(BAR * max(0.0, min(1.0, share)))
    end = "\n" if share >= 1 else ""
    write_own(f"\r[{'#' * filled}{' ' * (BAR - filled)}] {share:4.0%} {one_line(message)[:60]:60}{end}", sys.stderr)
    sys.stderr.flush()
