"""One Holdfast with its projects, targets and teams, on one engine: what an episode takes place in."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import psutil
from tests.agents.echo import offered
from tests.chaos.plan import ROLES, TARGETS, TEAMS
from tests.installation import PATIENCE, Clocked, kill_all, wait_until
from tests.repository import Repository

from holdfast.errors import HoldfastError

COMMAND_SECONDS = 60


class World(Clocked):
    """A data directory of its own, with everything that the clients need around it."""

    def __init__(self, folder: Path, *, database_url: str | None = None, sources: Path | None = None) -> None:
        """`sources`: the product to run instead of the checkout's own, for planted defects."""
        super().__init__(folder / "home")
        self.folder = folder
        self.engine = "sqlite" if database_url is None else "postgres"
        self.database_url = database_url
        """Where the store is read directly: never through a proxy."""
        self.settings |= {
            "HOLDFAST_DAEMON_WAIT": f"{PATIENCE:g}",
            "PYTHONDONTWRITEBYTECODE": "",  # else every daemon compiles the product again
        }
        if database_url is not None:
            self.settings["HOLDFAST_DATABASE_URL"] = database_url
        self.settings |= offered(*([] if sources is None else [sources]))
        self.logs = folder / "logs"
        self._commands: list[subprocess.Popen[bytes]] = []

    def make(self) -> None:
        """Make the projects and the configuration; nothing is started."""
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.logs.mkdir(parents=True, exist_ok=True)
        for name in {role.project for role in ROLES} - {"gamma"}:
            self.project(name).mkdir(parents=True, exist_ok=True)
        Repository(self.project("gamma"))
        teams: dict[str, dict[str, Any]] = {}
        for name in (*TARGETS, *TEAMS):
            self.project(name).mkdir(parents=True, exist_ok=True)
            teams[name] = {"project": str(self.project(name)), "agent": "echo", "delivery": "hook"}
        (self.home / "teams.json").write_text(json.dumps({"teams": teams}))

    def project(self, name: str) -> Path:
        """The directory of a project."""
        return self.folder / "projects" / name

    @property
    def database(self) -> Path:
        """The embedded store's file."""
        return self.home / "holdfast.db"

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of Holdfast to its end; one that does not end is killed and says so."""
        try:
            return self.run(*arguments)
        except subprocess.TimeoutExpired as late:
            return subprocess.CompletedProcess(late.cmd, -9, "", f"`holdfast {arguments[0]}` did not end")

    def take_over(self) -> None:
        """Start `holdfast serve`, which takes over from a daemon that a relay started."""
        with (self.logs / "serve.log").open("ab") as log:
            served = subprocess.Popen(
                self.daemon_command, env=self.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._commands.append(served)

    def signal_daemon(self, number: signal.Signals) -> int | None:
        """Send a signal to the daemon that answers now; its pid."""
        pid = self.daemon()
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return pid

    def daemon(self) -> int | None:
        """The pid of the daemon that answers now; one that refuses to tell is as good as none."""
        try:
            return super().daemon()
        except (HoldfastError, KeyError):
            return None

    def wait_for_daemon(self) -> None:
        """Wait until a daemon serves."""
        wait_until(lambda: self.daemon() is not None, "a daemon serves")

    def rest(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """One REST call; OSError when there is no answer, RestRefused when it is an error."""
        try:
            address = self.address()
        except HoldfastError as error:
            raise ConnectionError(str(error)) from error
        if address == "None":
            raise ConnectionError("the daemon does not serve HTTP yet")
        request = urllib.request.Request(  # noqa: S310 - loopback
            f"{address}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.key()}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
                return dict(json.loads(answer.read()))
        except urllib.error.HTTPError as error:
            raise RestRefused(error.code, error.read().decode(errors="replace")) from error
        except (ValueError, http.client.HTTPException) as error:
            raise ConnectionError(f"half an answer: {error!r}") from error

    def stop(self) -> list[str]:
        """Stop the daemon with the command; whatever of this home still runs is ended and named."""
        self.command("stop")
        with contextlib.suppress(TimeoutError):
            wait_until(lambda: not self.processes(), "every process has ended", 15)
        names = []
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):  # it ends just now
                names.append(f"{process.pid} {' '.join(process.cmdline())[:120]}")
                process.kill()
        self._reap_commands()
        return names

    def unstop(self) -> None:
        """Let relays start daemons again after `holdfast stop`."""
        (self.home / "stopped").unlink(missing_ok=True)

    def close(self) -> None:
        """End everything, without judging it."""
        kill_all(self.processes())
        with contextlib.suppress(TimeoutError):
            wait_until(lambda: not self.processes(), "every process has ended", 10)
        self._reap_commands()

    def _reap_commands(self) -> None:
        for started in self._commands:
            with contextlib.suppress(subprocess.TimeoutExpired):
                started.wait(10)
        self._commands.clear()


class RestRefused(Exception):
    """The daemon answered a REST call with an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status} {text}")
        self.status = status
