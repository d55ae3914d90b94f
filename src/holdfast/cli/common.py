"""What commands share: the --home option, what it comes to, and a progress bar."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from holdfast.config import Settings, read_settings
from holdfast.errors import HoldfastError
from holdfast.lock import check_home_owner
from holdfast.managed import VARIABLE, runs_under_agent
from holdfast.terminal import one_line, write_own

BAR = 24
FOR_AGENTS = frozenset(
    (
        *("status", "doctor", "verify", "resume", "find", "saved", "statusline", "queue", "demo"),
        *("protocol check", "protocol show", "protocol validate", "teams list", "teams check", "teams stats"),
    )
)
"""What a managed agent's shell may call: it only looks. Every other command is its owner's, a new one too."""


def add_home(parser: argparse.ArgumentParser) -> None:
    """Every command can be pointed at another data directory."""
    parser.add_argument("--home", metavar="DIR", help="the data directory (HOLDFAST_HOME, default ~/.holdfast)")


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings in force for a command; raises ForeignHome where the data directory is another user's."""
    settings = read_settings(home=options.home)
    check_home_owner(settings.home)
    return settings


def other_home(settings: Settings) -> str | None:
    """The data directory, where an agent or its hook would not find it by itself."""
    return None if settings.home == read_settings({}).home else str(settings.home)


def is_for_agents(words: Sequence[str]) -> bool:
    """Whether a managed agent's shell may give this command."""
    return words[0] in FOR_AGENTS or " ".join(words[:2]) in FOR_AGENTS


def is_agent(home: Path) -> bool:
    """Whether a managed agent of this data directory, or something that it started, gave this command."""
    return VARIABLE in os.environ or runs_under_agent(os.getpid(), home)


def is_person(home: Path) -> bool:
    """Whether somebody sits at a terminal who can be asked and shown what it is about."""
    return sys.stdin.isatty() and sys.stdout.isatty() and not is_agent(home)


def agreed(home: Path, what: str, question: str) -> bool:
    """Whether a person at a terminal says yes; raises where there is none. No option answers this."""
    require_person(home, what)
    return input(f"{question} Type yes: ").strip().lower() == "yes"


def require_person(home: Path, what: str) -> None:
    """Refuse to `what` unless a person at a terminal wants it."""
    if not is_person(home):
        raise HoldfastError(
            f"Only a person at a terminal can {what}.",
            recovery="Repeat the command in a terminal, with neither its input nor its output redirected.",
        )


def show_progress(share: float, message: str) -> None:
    """A progress bar, where somebody is looking."""
    if not sys.stderr.isatty():
        return
    filled = round(BAR * max(0.0, min(1.0, share)))
    end = "\n" if share >= 1 else ""
    write_own(f"\r[{'#' * filled}{' ' * (BAR - filled)}] {share:4.0%} {one_line(message)[:60]:60}{end}", sys.stderr)
    sys.stderr.flush()
