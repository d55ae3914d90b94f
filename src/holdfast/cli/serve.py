"""`holdfast serve`: the daemon in the foreground, or detached when a relay starts it."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import logging
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.common import add_home
from holdfast.config import DEFAULT_HOST, DEFAULT_PORT, Settings, read_settings
from holdfast.errors import DaemonRunning, HoldfastError
from holdfast.succession import newer_is_coming

if TYPE_CHECKING:
    from holdfast.daemon import Daemon
    from holdfast.lock import HomeLock

TAKE_OVER_SECONDS = 15.0
STARTING_SWITCH_SECONDS = 0.0005
"""How long a thread that imports may keep a hook's answer waiting; Python's own 5 ms add up over an answer's steps."""
LOG_LIMIT = 5 * 1024 * 1024


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "serve",
        help="run the daemon in the foreground",
        description="Run the daemon in the foreground. It serves agents on a unix socket and HTTP on loopback.",
    )
    parser.add_argument("--host", help=f"where HTTP listens (HOLDFAST_HOST, default {DEFAULT_HOST})")
    parser.add_argument("--port", type=int, help=f"where HTTP listens (HOLDFAST_PORT, default {DEFAULT_PORT})")
    parser.add_argument("--detach", action="store_true", help="run in the background, as a relay starts it")
    add_home(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until stopped."""
    settings = read_settings(home=options.home, host=options.host, port=options.port)
    if options.detach:
        return _detached(settings)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    if _serve(settings, _take_over(settings), _banner, by_hand=True):
        _start_again()
    return 0


def _serve(settings: Settings, lock: HomeLock, started: Callable[[Daemon], None], *, by_hand: bool) -> bool:
    from holdfast.daemon import Daemon

    usual = sys.getswitchinterval()

    def serves(daemon: Daemon) -> None:
        sys.setswitchinterval(usual)
        gc.freeze()
        gc.enable()
        started(daemon)

    async def serve() -> bool:
        return await Daemon(settings, lock, by_hand=by_hand).run(serves)

    # Nearly all that a start makes stays: to look through it for garbage again and again takes a sixth of the time.
    gc.disable()
    sys.setswitchinterval(STARTING_SWITCH_SECONDS)
    _spare_the_sniffing()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(serve())


def _spare_the_sniffing() -> None:
    """Where sniffio is installed, anyio asks it before every step which loop this is: a tenth of a call's time."""
    try:
        import sniffio
    except ImportError:
        return
    sniffio.thread_local.name = "asyncio"


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop


def _detached(settings: Settings) -> int:
    """Leave whoever started us at once: the daemon is nobody's child, and holds nobody's terminal."""
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")
    _trim_log(settings.home / "daemon.log")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    from holdfast.relay import place

    give_turn_back = _turn()
    if newer_is_coming(settings.home):
        logging.info("not started, because a newer holdfast takes over")
        return 0
    try:
        if _serve(settings, _wait_for_lock(settings), lambda _: give_turn_back(), by_hand=False):
            _start_again()
    except DaemonRunning:
        return 0  # another relay was faster; its daemon serves us all
    except HoldfastError as error:
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        Path(place.last_error(str(settings.home))).write_text(str(error))
        raise
    return 0


def _turn() -> Callable[[], None]:
    """How to give back the turn to start a daemon; nobody else starts one before."""
    from holdfast.relay.spawn import TURN

    text = os.environ.pop(TURN, "")
    if not text.isdecimal():  # somebody else than a relay or a hook started us
        return lambda: None
    turn = int(text)
    os.set_inheritable(turn, False)
    return lambda: os.close(turn)


def _wait_for_lock(settings: Settings) -> HomeLock:
    """The data directory's lock; waits for a holder that serves nobody, because it is about to end or to begin."""
    from holdfast.lock import HomeLock
    from holdfast.relay import place

    if kept := HomeLock.handed_down(settings.home, by_hand=False):
        return kept
    deadline = time.monotonic() + TAKE_OVER_SECONDS
    while True:
        try:
            return HomeLock.take(settings.home, by_hand=False)
        except DaemonRunning:
            served = Path(place.socket_path(str(settings.home))).exists()
            if served or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def _start_again() -> None:
    os.execv(sys.executable, [sys.executable, "-P", "-m", "holdfast", *sys.argv[1:]])  # noqa: S606 - our own command


def _trim_log(log: Path) -> None:
    """Keep one older log, so that the log of a daemon nobody watches does not grow for ever."""
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size > LOG_LIMIT:
            log.replace(log.with_suffix(".log.1"))


def _take_over(settings: Settings) -> HomeLock:
    """The data directory's lock. A daemon that a relay started makes room, also one that was started meanwhile."""
    from holdfast.cli.control import ask_daemon
    from holdfast.lock import HomeLock, read_holder

    if kept := HomeLock.handed_down(settings.home, by_hand=True):
        return kept
    deadline = time.monotonic() + TAKE_OVER_SECONDS
    asked: int | None = None
    while True:
        try:
            return HomeLock.take(settings.home, by_hand=True)
        except DaemonRunning:
            holder = read_holder(settings.home)
            late = time.monotonic() > deadline
            if late or (holder is not None and holder.by_hand):
                raise
        if holder is not None and holder.pid != asked:
            with contextlib.suppress(HoldfastError):
                ask_daemon(settings, "stop", {"why": "`holdfast serve` takes over"})
                asked = holder.pid
        time.sleep(0.02)


def _banner(daemon: Daemon) -> None:
    """What a person sees who starts the daemon."""
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
        "Connect any other agent: let it start this MCP server over stdio:",
        f"  {here}{command} mcp",
        "",
        "Ctrl-C stops it.",
    ]
    print("\n".join(lines), flush=True)
