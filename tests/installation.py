"""One Holdfast of a test's own: a data directory, a port, a daemon, and nothing left when it ends."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psutil

from holdfast.cli import main as holdfast_command
from holdfast.cli.control import ask_daemon
from holdfast.config import read_settings
from holdfast.errors import NoDaemon

PATIENCE = 60.0
"""Seconds that anything may take on a loaded machine before it counts as broken."""

HOLDFAST = Path(sys.executable).with_name("holdfast")

TO_THE_TOOLS: list[dict[str, Any]] = [
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "scales", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list", "params": {}},
]
"""What a client says until it is told the tools."""


class Installation:
    """The `holdfast` command with a data directory that no other test has, and whatever port is free."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.settings = {"HOLDFAST_HOME": str(home), "HOLDFAST_PORT": "0"}
        self.daemon_command = [str(HOLDFAST), "serve"]
        self._served: subprocess.Popen[bytes] | None = None

    def mcp_config(self) -> dict[str, Any]:
        """The server as Claude Code's `--mcp-config` wants it."""
        server = {"type": "stdio", "command": str(HOLDFAST), "args": ["mcp"], "env": self.settings}
        return {"mcpServers": {"holdfast": server}}

    def environment(self) -> dict[str, str]:
        """The environment of whatever is to work on this data directory, without what an agent around us set."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "CLAUDE"))}
        return {**ours, **self.settings}

    def run(
        self, *arguments: str, stdin: str = "", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run one command of Holdfast to its end."""
        return subprocess.run(
            [str(HOLDFAST), *arguments],
            env={**self.environment(), **(env or {})},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
        )

    def at_terminal(self, *arguments: str, answer: str = "yes") -> subprocess.CompletedProcess[str]:
        """Run one command at a terminal where somebody types an answer; all that is shown is its output."""
        return run_at_terminal([str(HOLDFAST), *arguments], self.environment(), answer)

    def serve(self, *, another_than: int | None = None) -> None:
        """Start the daemon and wait until it (and no other with the given pid) serves MCP and HTTP."""
        served = self._served = subprocess.Popen(
            self.daemon_command,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        wait_until(lambda: served.poll() is not None or self._serves(another_than), "the daemon serves")
        assert served.poll() is None, f"`holdfast serve` ended with status {served.returncode}"

    def _serves(self, another_than: int | None) -> bool:
        try:
            status = self._ask("status")
        except NoDaemon:
            return False
        return bool(status["ready"]) and status["pid"] != another_than

    def listed_tools(self) -> bytes:
        """The line with which `holdfast mcp` answers tools/list."""
        lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in TO_THE_TOOLS)
        told = self.run("mcp", stdin=lines, env={"HOLDFAST_DAEMON_WAIT": f"{PATIENCE:g}"})
        (listed,) = [line for line in told.stdout.splitlines() if json.loads(line).get("id") == 2]
        assert "result" in json.loads(listed), listed
        return listed.encode()

    def key(self) -> str:
        """What an HTTP client sends to be let in."""
        return (self.home / "key").read_text().strip()

    def caller(self, name: str) -> str:
        """The agent's session id behind a name in a test: its own, because nobody else uses this daemon."""
        return name

    def address(self) -> str:
        """Where HTTP is served."""
        return str(self._ask("status")["address"])

    def daemon(self) -> int | None:
        """The pid of the daemon that answers now."""
        try:
            return int(self._ask("status")["pid"])
        except NoDaemon:
            return None

    def _ask(self, command: str) -> dict[str, Any]:
        """As `holdfast` commands do it, without a process for each time that a test looks."""
        return ask_daemon(read_settings({}, home=str(self.home)), command)

    def kill_daemon(self) -> int:
        """End the daemon with SIGKILL, wait until it is gone, and return the pid it had."""
        pid = self.daemon()
        assert pid is not None, "no daemon to kill"
        os.kill(pid, signal.SIGKILL)
        self._reap()
        wait_until(lambda: not _is_running(pid), f"daemon {pid} is gone")
        return pid

    def close(self) -> None:
        """Stop whatever runs, and see that nothing of this data directory lives on."""
        stopped = io.StringIO()
        with contextlib.redirect_stdout(stopped), contextlib.redirect_stderr(stopped):
            holdfast_command(["stop", "--home", str(self.home)])  # the command itself, without a new interpreter
        with contextlib.suppress(TimeoutError):
            # A daemon that is just being started is a new process at each look, until it finds that it was stopped.
            wait_until(lambda: not self._is_starting(), "no daemon is being started")
            wait_until(lambda: not self.processes(), "every process has ended")
        left = self.processes()
        kill_all(left)
        self._reap()
        assert not left, f"still running after `holdfast stop` ({stopped.getvalue()}): {left}"

    def _is_starting(self) -> bool:
        """Whether somebody holds the turn to start a daemon; it is handed down from process to process."""
        with (self.home / "starting").open("a") as turn:
            try:
                fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def processes(self) -> list[psutil.Process]:
        """Every process that works on this data directory."""
        return [process for process in psutil.process_iter() if self._belongs(process)]

    def _belongs(self, process: psutil.Process) -> bool:
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            named = str(self.home) in process.cmdline()
            return named or process.environ().get("HOLDFAST_HOME") == str(self.home)
        except (psutil.NoSuchProcess, psutil.AccessDenied):  # gone meanwhile, or another user's
            return False

    def _reap(self) -> None:
        if self._served is not None:
            self._served.wait(PATIENCE)
            self._served = None


class Clocked(Installation):
    """An installation in which time passes as the test says."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self._clock = home.with_name(f"{home.name}-clock")
        self._ahead = self._leapt = 0
        self.settings["HOLDFAST_TEST_CLOCK"] = str(self._clock)

    def later(self, milliseconds: int) -> None:
        """Let time pass."""
        self._ahead += milliseconds
        self._set()

    def leap(self, milliseconds: int) -> None:
        """Let the wall clock leap, as when a machine wakes up or its clock is set."""
        self._leapt += milliseconds
        self._set()

    def _set(self) -> None:
        written = self._clock.with_suffix(".new")
        written.write_text(f"{self._ahead} {self._leapt}")
        written.replace(self._clock)  # at once: the daemon may be reading


def kill_all(processes: Iterable[psutil.Process]) -> None:
    """Kill processes as a crash does; one may end with the one that was killed before it."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def wait_until(condition: Callable[[], bool], what: str, limit: float = PATIENCE) -> None:
    """Return as soon as `condition` holds; raises TimeoutError when it does not within `limit` seconds."""
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {limit:.0f} s: {what}")
        time.sleep(0.02)


def run_at_terminal(command: list[str], env: dict[str, str], answer: str = "yes") -> subprocess.CompletedProcess[str]:
    """Run a command at a terminal where somebody types an answer; all that is shown is its output."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, 1000))  # wide enough that no line is broken
    try:
        os.write(ours, f"{answer}\n".encode())
        with subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            shown = _read_terminal(ours)
            status = process.wait(2 * PATIENCE)
    finally:
        os.close(ours)
    return subprocess.CompletedProcess(command, status, shown.decode().replace("\r\n", "\n"), "")


def _read_terminal(ours: int) -> bytes:
    """All that is written to a terminal, until nobody has it open any more."""
    shown = b""
    while True:
        assert select.select([ours], [], [], 2 * PATIENCE)[0], f"nothing more is written after {shown!r}"
        try:
            piece = os.read(ours, 65536)
        except OSError:  # how Linux tells that the other end is closed
            return shown
        if not piece:
            return shown
        shown += piece


def _is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
