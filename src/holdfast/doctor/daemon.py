"""Checks of the daemon: running or startable, of this version, answering on its socket and over HTTP."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from holdfast.client import Client
from holdfast.doctor.findings import Finding, Fix, fault, note, ok
from holdfast.doctor.surroundings import Surroundings
from holdfast.errors import HoldfastError, NoDaemon
from holdfast.process.home_lock import HomeLock
from holdfast.relay import place, spawn
from holdfast.version import __version__

HTTP_SECONDS = 3.0
POLL_SECONDS = 0.05
LOG_TAIL = 64 * 1024
TRACEBACK = "Traceback (most recent call last)"

SEE = "Run `holdfast serve` to see in the foreground why it does not start."


def check_socket(around: Surroundings) -> Iterator[Finding]:
    """Check the socket file: a daemon's, left by a dead one, or something else."""
    path = Path(place.socket_path(str(around.home)))
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.geteuid():
        yield fault(f"{path} is not a socket of this user.", f"Remove it: rm {path}")
    elif around.daemon is None and around.holder() is None:
        yield note(
            f"{path} was left by a daemon that was killed; nothing listens there.",
            "The next daemon replaces it.",
            _remove_socket(around.home, path),
        )


def check_daemon(around: Surroundings) -> Iterator[Finding]:
    """Check the running daemon; start one if there is none, as the first agent would."""
    status = around.daemon
    if status is not None:
        yield _running(around)
        return
    holder = around.holder()
    stopped = Path(place.stopped_marker(str(around.home)))
    if holder is not None:
        yield fault(
            f"process {holder.pid} ({holder.purpose}, holdfast {holder.version}) holds {around.home} but does"
            " not answer.",
            "Wait a moment if it is just starting; otherwise stop it by force with `holdfast stop`.",
        )
    elif stopped.exists():
        yield note(
            "stopped with `holdfast stop`: hooks and running agents work without it",
            "Run `holdfast serve`, or start an agent.",
            _start_again(around, stopped),
        )
    elif around.broken:
        yield note(f"not running, and not started because of: {', '.join(sorted(around.broken))}")
    else:
        started = start(around)
        yield ok(f"was not running; {started} (it exits by itself when nothing needs it)")


def check_http(around: Surroundings) -> Iterator[Finding]:
    """Check the HTTP port, if the daemon serves one."""
    status = around.daemon
    if status is None:
        return
    address = status.get("address")
    if not address:
        yield note(f"HTTP is off: {status.get('http')}", "Set HOLDFAST_PORT to a free port and run `holdfast serve`.")
        return
    try:
        health = Client(str(address), "", timeout=HTTP_SECONDS).healthz()
    except HoldfastError as error:
        yield fault(f"{address} does not answer: {error.message}", "Run `holdfast stop`, then `holdfast serve`.")
        return
    yield ok(f"{address} ({health.status})")


def _running(around: Surroundings) -> Finding:
    status = around.daemon or {}
    version, by = status.get("version"), status.get("started_by")
    text = f"holdfast {version}, process {status.get('pid')}, started by {by}, {status.get('clients')} clients"
    if version == __version__:
        return ok(text)
    restart = None if by == "hand" else _restart_fix(around)
    return fault(
        f"{text}; this command is holdfast {__version__}.",
        "Run `holdfast stop`, then `holdfast serve`: connected agents are not interrupted.",
        restart,
    )


def _remove_socket(home: Path, path: Path) -> Fix:
    def remove() -> str:
        # Under the lock, so that a daemon that started meanwhile keeps its socket.
        lock = HomeLock.take(home, by_hand=False, purpose="doctor")
        try:
            path.unlink(missing_ok=True)
        finally:
            lock.release()
        return f"removed {path}"

    return remove


def _start_again(around: Surroundings, stopped: Path) -> Fix:
    def wake() -> str:
        stopped.unlink(missing_ok=True)
        return f"removed {stopped}; {start(around)}"

    return wake


def _restart_fix(around: Surroundings) -> Fix:
    def restart() -> str:
        around.ask("stop", {"why": "`holdfast doctor --fix` replaces it by this version"})
        deadline = time.monotonic() + around.timeout
        while around.holder() is not None:
            if time.monotonic() > deadline:
                raise NoDaemon("The daemon does not stop.", recovery="Stop it by force with `holdfast stop`.")
            time.sleep(POLL_SECONDS)
        return start(around)

    return restart


def start(around: Surroundings) -> str:
    """Start a daemon as a hook would, and wait for it to answer; return a description of it."""
    home = str(around.home)
    log, last_error, began = around.home / "daemon.log", Path(place.last_error(home)), time.time()
    logged = log.stat().st_size if log.exists() else 0
    started = subprocess.run(  # noqa: S603 - our own starter
        [sys.executable, "-I", "-S", spawn.__file__, home],
        env=dict(around.env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=around.timeout,
    )
    if started.returncode != 0:
        raise NoDaemon(f"No daemon can be started: {started.stderr.strip()}", recovery=SEE)
    deadline = time.monotonic() + around.timeout
    while time.monotonic() < deadline:
        try:
            status = around.ask("status", {})
        except NoDaemon:
            status = {}
            if around.holder() is None and last_error.exists() and last_error.stat().st_mtime >= began - 1:
                raise NoDaemon(f"The daemon cannot start: {last_error.read_text().strip()}", recovery=SEE) from None
            if around.holder() is None and (crash := _crash(log, logged)):
                raise NoDaemon(f"The daemon cannot start: {crash}", recovery=SEE) from None
        # It answers hooks first, and agents a moment later.
        if status and status.get("http") != "starting":
            return f"started holdfast {status['version']}, process {status['pid']}"
        time.sleep(POLL_SECONDS)
    raise NoDaemon(f"The daemon did not answer within {around.timeout:.0f} s. Its log: {log}", recovery=SEE)


def _crash(log: Path, logged: int) -> str | None:
    """Return the last line of the traceback with which a daemon crashed, ignoring what was in the log before."""
    try:
        with log.open("rb") as file:
            file.seek(logged if log.stat().st_size >= logged else 0)  # it may have been rotated
            text = file.read(LOG_TAIL).decode(errors="replace")
    except OSError:
        return None
    lines = text.splitlines()
    is_whole = TRACEBACK in text and text.endswith("\n") and not lines[-1].startswith((" ", "Traceback"))
    return lines[-1] if is_whole else None
