"""What commands share: the --home option, what it comes to, and a progress bar."""

from __future__ import annotations

import argparse
import os
import sys

from holdfast.config import Settings, read_settings
from holdfast.errors import HoldfastError
from holdfast.lock import check_home_owner
from holdfast.terminal import one_line, write_own

BAR = 24


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


def refuse_agents(what: str) -> None:
    """Refuse to `what` on behalf of a managed agent: it is for a person to say."""
    if "HOLDFAST_MANAGED" in os.environ:
        raise HoldfastError(f"A managed agent cannot {what}.", recovery="Its owner says so in a terminal.")


def show_progress(share: float, message: str) -> None:
    """A progress bar, where somebody is looking."""
    if not sys.stderr.isatty():
        return
    filled = round(BAR * max(0.0, min(1.0, share)))
    end = "\n" if share >= 1 else ""
    write_own(f"\r[{'#' * filled}{' ' * (BAR - filled)}] {share:4.0%} {one_line(message)[:60]:60}{end}", sys.stderr)
    sys.stderr.flush()
