"""`holdfast serve`: runs the daemon in the foreground and prints how to connect."""

from __future__ import annotations

import argparse
import contextlib
import logging
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.common import add_home
from holdfast.config import DEFAULT_HOST, DEFAULT_PORT, Settings, read_settings
from holdfast.daemon.log import DaemonLog
from holdfast.daemon.serve import TAKE_OVER_SECONDS, serve, serve_detached, start_again
from holdfast.errors import DaemonRunning, HoldfastError
from holdfast.text.terminal import say

if TYPE_CHECKING:
    from holdfast.daemon.daemon import Daemon
    from holdfast.process.home_lock import HomeLock


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "serve",
        description="Run the daemon in the foreground. It serves agents on a unix socket and HTTP on loopback.",
    )
    parser.add_argument("--host", help=f"the address HTTP listens on (HOLDFAST_HOST, default {DEFAULT_HOST})")
    parser.add_argument("--port", type=int, help=f"the port HTTP listens on (HOLDFAST_PORT, default {DEFAULT_PORT})")
    parser.add_argument("--detach", action="store_true", help="run in the background, as a relay starts it")
    add_home(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until stopped."""
    settings = read_settings(home=options.home, host=options.host, port=options.port)
    if options.detach:
        return serve_detached(settings)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", handlers=[DaemonLog()])
    if serve(settings, _take_over(settings), _banner, by_hand=True):
        start_again()
    return 0


def _take_over(settings: Settings) -> HomeLock:
    """Take the data directory's lock. A daemon that a relay started, even meanwhile, is stopped."""
    from holdfast.cli.control import ask_daemon
    from holdfast.process.home_lock import HomeLock, read_holder

    if kept := HomeLock.handed_down(settings.home, by_hand=True):
        return kept
    deadline = time.monotonic() + TAKE_OVER_SECONDS
    stopped_pid: int | None = None
    while True:
        try:
            return HomeLock.take(settings.home, by_hand=True)
        except DaemonRunning:
            holder = read_holder(settings.home)
            late = time.monotonic() > deadline
            if late or (holder is not None and holder.by_hand):
                raise
        if holder is not None and holder.pid != stopped_pid:
            with contextlib.suppress(HoldfastError):
                ask_daemon(settings, "stop", {"why": "`holdfast serve` takes over"})
                stopped_pid = holder.pid
        time.sleep(0.02)


def _banner(daemon: Daemon) -> None:
    """Print how to connect, for the person who starts the daemon."""
    settings = daemon.settings
    command = shutil.which("holdfast") or str(Path(sys.executable).with_name("holdfast"))
    here = "" if settings.home == read_settings({}).home else f"HOLDFAST_HOME={shlex.quote(str(settings.home))} "
    lines = [
        "Holdfast is serving.",
        f"  data     {settings.home} ({'PostgreSQL' if settings.database_url else 'embedded store'})",
        f"  HTTP     {daemon.web.address if daemon.web else None}/mcp   (send the key that `{command} key` prints)",
        *(f"  notice   {notice}" for notice in daemon.notices),
        "",
        "Connect Claude Code (or codex, gemini, opencode, cursor, vscode); it shows what it changes and asks:",
        f"  {here}{command} setup claude",
        "Connect any other agent by having it start this MCP server over stdio:",
        f"  {here}{command} mcp",
        "",
        "Press Ctrl-C to stop.",
    ]
    for line in lines:
        say(line)
    sys.stdout.flush()
