"""Runs a daemon in this process: as `holdfast serve` asks for it, or detached, as relays and hooks start it.

The detached one is what an agent's first hook waits for, so it comes up without the command line's parser.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.config import Settings, read_settings
from holdfast.daemon.log import DaemonLog
from holdfast.errors import DaemonRunning, HoldfastError
from holdfast.files.errors import explain
from holdfast.relay.spawn import FOR_HOOK, TURN
from holdfast.text.terminal import say

if TYPE_CHECKING:
    from holdfast.daemon.daemon import Daemon
    from holdfast.process.home_lock import HomeLock

TAKE_OVER_SECONDS = 15.0
STARTING_SWITCH_SECONDS = 0.0005
"""How long a thread that imports may keep a hook's answer waiting; Python's own 5 ms add up over an answer's steps."""


def run_detached(arguments: Sequence[str]) -> int | None:
    """Run what `relay/spawn.py` asks for; None for any other arguments, which are the command line's to read."""
    names, values = arguments[::2], arguments[1::2]
    options = dict(zip(names, values, strict=False))
    port = options.get("--port", "")
    if (
        len(names) != len(values)
        or options.keys() - {"--home", "--host", "--port"}
        or not (port == "" or port.isdecimal())
    ):
        return None
    try:
        return serve_detached(
            read_settings(home=options.get("--home"), host=options.get("--host"), port=int(port) if port else None)
        )
    except (HoldfastError, OSError) as error:
        say(f"holdfast: {explain(error) if isinstance(error, OSError) else error}", file=sys.stderr)
        return 1


def serve(
    settings: Settings, lock: HomeLock, started: Callable[[Daemon], None], *, by_hand: bool, hook_waits: bool = False
) -> bool:
    """Serve until the daemon is stopped; return whether it wants to be started again."""
    from holdfast.daemon.daemon import Daemon

    usual = sys.getswitchinterval()

    def serves(daemon: Daemon) -> None:
        sys.setswitchinterval(usual)
        gc.freeze()
        gc.enable()
        started(daemon)

    async def until_stopped() -> bool:
        return await Daemon(settings, lock, by_hand=by_hand, hook_waits=hook_waits).run(serves)

    # Almost everything that a start allocates stays alive: collecting garbage meanwhile takes a sixth of the time.
    gc.disable()
    sys.setswitchinterval(STARTING_SWITCH_SECONDS)
    _set_sniffio_loop()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(until_stopped())


def serve_detached(settings: Settings) -> int:
    """Detach from the process that started us, and serve: the daemon is not its child and keeps no terminal open."""
    from holdfast.process.home_lock import check_home_owner

    check_home_owner(settings.home)
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")
    log = DaemonLog(settings.home / "daemon.log")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", handlers=[log])
    from holdfast.relay import place

    give_turn_back, hook_waits = _turn(), os.environ.pop(FOR_HOOK, "") == "1"
    try:
        lock = _wait_for_lock(settings)
        if serve(settings, lock, lambda _: give_turn_back(), by_hand=False, hook_waits=hook_waits):
            start_again()
    except DaemonRunning:
        return 0  # another relay was first; its daemon serves all of them
    except (HoldfastError, OSError) as error:
        with contextlib.suppress(OSError):  # it is told on stderr as well, which is the log
            settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
            reason = explain(error) if isinstance(error, OSError) else error
            Path(place.last_error(str(settings.home))).write_text(str(reason))
        raise
    return 0


def _set_sniffio_loop() -> None:
    """Tell sniffio the loop in advance: anyio asks it before every step, which takes a tenth of a call's time."""
    try:
        import sniffio
    except ImportError:
        return
    sniffio.thread_local.name = "asyncio"


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    try:
        from holdfast.daemon.event_loop import EventLoop
    except ImportError:  # there is no uvloop on Windows
        return None
    return EventLoop


def _turn() -> Callable[[], None]:
    """Return a callback that gives back the right to start a daemon; until then no other is started."""
    text = os.environ.pop(TURN, "")
    if not text.isdecimal():  # started by neither a relay nor a hook
        return lambda: None
    turn = int(text)
    os.set_inheritable(turn, False)
    return lambda: os.close(turn)


def _wait_for_lock(settings: Settings) -> HomeLock:
    """Take the data directory's lock; waits for a holder that is of an older version, or that just starts or ends."""
    from holdfast.daemon.upgrade import UpgradeRequest
    from holdfast.process.home_lock import HomeLock
    from holdfast.relay import place

    if kept := HomeLock.handed_down(settings.home, by_hand=False):
        return kept
    deadline = time.monotonic() + TAKE_OVER_SECONDS
    request: UpgradeRequest | None = None
    try:
        while True:
            try:
                return HomeLock.take(settings.home, by_hand=False)
            except DaemonRunning:
                if request is not None and not request.open:
                    request, deadline = None, time.monotonic() + TAKE_OVER_SECONDS
                if request is None and Path(place.socket_path(str(settings.home))).exists():
                    request = UpgradeRequest.send(settings.home)
                    if request is None:
                        raise
                if request is None and time.monotonic() > deadline:
                    raise
            time.sleep(0.02)
    finally:
        if request is not None:
            request.close()


def start_again() -> None:
    """Replace this process by a new daemon, with the same command."""
    os.execv(sys.executable, [sys.executable, "-P", "-m", "holdfast", *sys.argv[1:]])  # noqa: S606 - our own command
