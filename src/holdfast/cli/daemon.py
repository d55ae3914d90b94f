"""`holdfast status` and `stop`: looking after the daemon."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import time
from pathlib import Path

from holdfast.cli.common import add_home, settings_of
from holdfast.cli.control import ask_daemon
from holdfast.config import Settings
from holdfast.errors import DaemonRunning, HoldfastError, NoDaemon
from holdfast.lock import HomeLock, make_home, read_holder
from holdfast.relay import place

STOP_SECONDS = 15.0
NOT_RUNNING = 3
"""Exit status of `status` when no daemon is running, as init scripts have it."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    status = commands.add_parser("status", help="show the running daemon (exit status 3 when there is none)")
    status.add_argument("--json", action="store_true", help="print it as JSON")
    add_home(status)
    status.set_defaults(run=show_status)

    stop = commands.add_parser(
        "stop",
        help="stop the daemon",
        description="Stop the daemon. It stays stopped until the next `holdfast serve` or a newly started agent.",
    )
    add_home(stop)
    stop.set_defaults(run=stop_daemon)


def show_status(options: argparse.Namespace) -> int:
    """Print what the daemon says of itself."""
    settings = settings_of(options)
    try:
        status = ask_daemon(settings, "status")
    except NoDaemon as error:
        print(json.dumps({"running": False, "home": str(settings.home)}) if options.json else str(error))
        return NOT_RUNNING
    if options.json:
        print(json.dumps({"running": True, **status}))
        return 0
    rows = {
        "version": status["version"],
        "process": f"{status['pid']} (started by {status['started_by']})",
        "home": status["home"],
        "store": status["engine"],
        "address": status["address"] or f"HTTP is off: {status['http']}",
        "uptime": _span(status["uptime"]),
        "clients": status["clients"],
    }
    for name, value in rows.items():
        print(f"{name:9} {value}")
    for loop in status["loops"]:
        if loop["last_error"]:
            print(f"trouble   {loop['name']}: failed {loop['failures']} times, last: {loop['last_error']}")
    for mirror in status["mirrors"]:
        print(f"trouble   memories of {mirror['root']}: {mirror.get('failure', 'not written yet')}")
    for notice in status["notices"]:
        print(f"notice    {notice}")
    return 0


def stop_daemon(options: argparse.Namespace) -> int:
    """Stop it in good order; by force if it does not answer."""
    settings = settings_of(options)
    make_home(settings.home)
    # Before the daemon ends: a relay that notices its end must find the marker and not start another.
    Path(place.stopped_marker(str(settings.home))).touch(mode=0o600)
    holder = read_holder(settings.home)
    try:
        ask_daemon(settings, "stop", {"why": "`holdfast stop` was called"})
    except HoldfastError:
        if _is_free(settings):
            print(f"No daemon was running for {settings.home}.")
            return 0
        if holder is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(holder.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while not _is_free(settings):
        if time.monotonic() > deadline:
            if holder is None:
                raise NoDaemon("The daemon does not end and did not say which process it is.")
            os.kill(holder.pid, signal.SIGKILL)
            deadline = time.monotonic() + STOP_SECONDS
        time.sleep(0.02)
    print("Stopped. It stays so until the next `holdfast serve` or a newly started agent.")
    return 0


def _is_free(settings: Settings) -> bool:
    try:
        HomeLock.take(settings.home, by_hand=True, purpose="stop").release()
    except DaemonRunning:
        return False
    return True


def _span(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
