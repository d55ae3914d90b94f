"""Shared by commands: the --home option and its settings, questions to a person, and a progress bar."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from holdfast.config import Settings, read_settings
from holdfast.errors import BadInput, HoldfastError
from holdfast.identity.managed import VARIABLE, runs_under_agent
from holdfast.process.home_lock import check_home_owner
from holdfast.text.terminal import one_line, write_own

BAR = 24
PATIENCE_SECONDS = 1.0
"""How long a person waits without wondering what is going on."""


def add_home(parser: argparse.ArgumentParser) -> None:
    """Add the --home option."""
    parser.add_argument("--home", metavar="DIR", help="the data directory (HOLDFAST_HOME, default ~/.holdfast)")


def described_parser(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, description: str, text: str | None = None
) -> argparse.ArgumentParser:
    """Add a command whose description is printed as it is written, with the --home option.

    `text` is its line in help; the commands of the table have theirs there.
    """
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser(name, help=text, description=description, formatter_class=form)
    add_home(parser)
    return parser


def settings_of(options: argparse.Namespace) -> Settings:
    """Read the settings of a command; raises ForeignHome if the data directory belongs to another user."""
    settings = read_settings(home=options.home)
    check_home_owner(settings.home)
    return settings


def directory_of(text: str) -> Path:
    """Return the directory that a command's DIR names."""
    directory = Path(os.path.realpath(Path(text).expanduser()))
    if not directory.is_dir():
        raise BadInput("DIR", f"{one_line(text)} is not a directory")
    return directory


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
    """Refuse to `what` unless a person is at the terminal: an agent's shell is none, even with `script` around it."""
    from holdfast.agents.registry import AGENTS

    agents = {name for agent in AGENTS.values() for name in agent.session_variables}
    if not is_person(home) or agents & os.environ.keys():
        raise HoldfastError(
            f"Only a person at a terminal can {what}.",
            recovery="Run it in a terminal of your own, not an agent's, without redirecting its input or output.",
        )


def given_text(words: Sequence[str], field: str) -> str:
    """Return the text of a command's words; a single - reads it from stdin."""
    try:
        text = sys.stdin.buffer.read().decode() if list(words) == ["-"] else " ".join(words)
        text.encode()
    except UnicodeError as error:
        raise BadInput(field, "must be UTF-8") from error
    return text


class PassingProgress:
    """Shows what is being done if it takes a while, on a line that is empty again when it is done."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._shown = False

    def __call__(self, share: float, message: str) -> None:
        """Show it if stderr is a terminal."""
        if sys.stderr.isatty() and share < 1 and time.monotonic() - self._began > PATIENCE_SECONDS:
            write_own(f"\r{share:4.0%} {one_line(message)[:60]:60}", sys.stderr)
            self._shown = True
        elif share >= 1 and self._shown:
            write_own(f"\r{'':65}\r", sys.stderr)
        sys.stderr.flush()


def show_progress(share: float, message: str) -> None:
    """Show a progress bar if stderr is a terminal."""
    if not sys.stderr.isatty():
        return
    filled = round(BAR * max(0.0, min(1.0, share)))
    end = "\n" if share >= 1 else ""
    write_own(f"\r[{'#' * filled}{' ' * (BAR - filled)}] {share:4.0%} {one_line(message)[:60]:60}{end}", sys.stderr)
    sys.stderr.flush()
