"""`holdfast status` and `stop`."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

from holdfast.cli.common import add_home, settings_of
from holdfast.cli.control import ask_daemon
from holdfast.config import Settings
from holdfast.errors import DaemonRunning, HoldfastError, NoDaemon
from holdfast.files.errors import FileTrouble, explain
from holdfast.process.home_lock import Holder, HomeLock, current_holder, make_home, read_holder
from holdfast.relay import place
from holdfast.text.terminal import say
from holdfast.times import iso, local

STOP_SECONDS = 15.0
POLL_SECONDS = 0.02
STOP = "stop"
NOT_RUNNING = 3
"""Exit status of `status` when no daemon is running, as in init scripts."""
STORE_AWAY = 1
"""Exit status of `status` when the daemon is running but its store does not answer."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    status = commands.add_parser(
        "status",
        description="Show the running daemon. Exit status 3: there is none; 1: its store does not answer.",
    )
    status.add_argument("--json", action="store_true", help="print it as JSON")
    add_home(status)
    status.set_defaults(run=show_status)

    stop = commands.add_parser(
        "stop",
        description="Stop the daemon. It stays stopped until the next `holdfast serve` or a newly started agent.",
    )
    add_home(stop)
    stop.set_defaults(run=stop_daemon)


def show_status(options: argparse.Namespace) -> int:
    """Print the daemon's status."""
    settings = settings_of(options)
    try:
        status = ask_daemon(settings, "status")
    except NoDaemon as error:
        say(json.dumps({"running": False, "home": str(settings.home)}) if options.json else str(error))
        return NOT_RUNNING
    outage = status.get("outage")
    if options.json:
        say(json.dumps({"running": True, **status}))
        return STORE_AWAY if outage else 0
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
        say(f"{name:9} {value}")
    if outage:
        repair = f" {outage['repair']}" if outage.get("repair") else ""
        say(f"trouble   the store has not answered since {local(iso(outage['since']))}: {outage['reason']}{repair}")
    for loop in status["loops"]:
        missed = outage and (loop["last_error"] or "").startswith("StoreUnreachable")  # covered by the line above
        if loop["last_error"] and not missed:
            say(f"trouble   {loop['name']}: failed {loop['failures']} times, last: {loop['last_error']}")
    for mirror in status.get("mirrors", ()):
        say(f"trouble   memories of {mirror['root']}: {mirror.get('failure', 'not written yet')}")
    for one in status.get("approvals", ()):
        say(f"waiting   {one['team']} waits to be allowed {one['tool']}: holdfast approve {one['id']}")
    for worktree, why in status.get("gates_off", {}).items():
        say(f"trouble   commits in {worktree} are not refused: {why}")
    for notice in status["notices"]:
        say(f"notice    {notice}")
    return STORE_AWAY if outage else 0


def stop_daemon(options: argparse.Namespace) -> int:
    """Stop the daemon cleanly; by force if it does not answer."""
    settings = settings_of(options)
    make_home(settings.home)
    stopped_pid: int | None = None
    deadline = time.monotonic() + STOP_SECONDS
    while True:
        # Marked first: a relay that notices the daemon's end must find the marker and not start another.
        unmarked = _mark_stopped(settings)
        if _is_free(settings):
            break
        holder = _daemon_in(settings)
        if holder is not None and holder.pid != stopped_pid:  # may also be one that took over meanwhile
            stopped_pid, deadline = holder.pid, time.monotonic() + STOP_SECONDS
            _tell_to_stop(settings, holder.pid)
        elif time.monotonic() > deadline:
            if stopped_pid is None:
                raise NoDaemon("The daemon does not stop, and its process id is unknown.")
            _signal(stopped_pid, signal.SIGKILL)
            deadline = time.monotonic() + STOP_SECONDS
        time.sleep(POLL_SECONDS)
    if stopped_pid is None:
        say(f"No daemon was running for {settings.home}.")
    elif unmarked is None:
        say("Stopped. It stays stopped until the next `holdfast serve` or a newly started agent.")
    else:
        say("Stopped.")
    if unmarked is not None:
        say(f"holdfast: A running agent may start it again: {unmarked}", file=sys.stderr)
    return 0 if unmarked is None else 1


def _tell_to_stop(settings: Settings, pid: int) -> None:
    try:
        ask_daemon(settings, "stop", {"why": "`holdfast stop` was called"})
    except HoldfastError:
        _signal(pid, signal.SIGTERM)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _mark_stopped(settings: Settings) -> FileTrouble | None:
    """Keep running relays from starting a daemon; return why, if the marker cannot be written."""
    marker = Path(place.stopped_marker(str(settings.home)))
    try:
        if not marker.exists():
            marker.touch(mode=0o600)
    except OSError as error:
        return explain(error)
    return None


def _is_free(settings: Settings) -> bool:
    try:
        HomeLock.take(settings.home, by_hand=True, purpose=STOP).release()
    except DaemonRunning:
        return False
    except OSError:  # not writable, but readable
        return current_holder(settings.home) is None
    return True


def _daemon_in(settings: Settings) -> Holder | None:
    """Return the daemon to be stopped; None while it is not known."""
    holder = read_holder(settings.home)
    if holder is None or holder.purpose == STOP:  # another `holdfast stop` is checking whether it is free
        return None
    if holder.purpose != "daemon":
        raise DaemonRunning(
            f"{settings.home} is held by `holdfast {holder.purpose}`, process {holder.pid}, which is not a daemon.",
            recovery="Wait until it has finished.",
        )
    return holder


def _span(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
