"""A Holdfast of the benchmarks' own: its daemon, and the relay that an agent would start."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

HOLDFAST = Path(sys.executable).with_name("holdfast")
RELAY = (str(HOLDFAST), "mcp")
PATIENCE = 120.0


class DaemonFailed(Exception):
    """The daemon did not start, or did not stop."""


class Served:
    """A daemon with a data directory of its own, for as long as the `with` block lasts."""

    def __init__(self, home: Path, command: Sequence[str] = (str(HOLDFAST), "serve")) -> None:
        self.home = home
        self._command = command
        self.port = _free_port()
        place = {"HOLDFAST_HOME": str(home), "CLAUDE_CONFIG_DIR": str(home.with_name("claude"))}
        self.env = {**neutral_environment(), **place, "HOLDFAST_PORT": str(self.port)}
        self.start_time = 0.0
        """Seconds from the start of the process until HTTP answered."""

    def key(self) -> str:
        """What an HTTP client sends to be let in."""
        told = subprocess.run([str(HOLDFAST), "key"], env=self.env, capture_output=True, text=True, check=True)
        return told.stdout.strip()

    def __enter__(self) -> Self:
        self.home.mkdir(parents=True, exist_ok=True)
        began = time.perf_counter()
        log = (self.home.parent / f"{self.home.name}.log").open("ab")
        with log:
            self._process = subprocess.Popen(
                self._command, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            while not self._is_healthy():
                if self._process.poll() is not None or time.perf_counter() - began > PATIENCE:
                    raise DaemonFailed(f"the daemon did not start: {Path(log.name).read_text().strip()[-2000:]}")
                time.sleep(0.002)
        except BaseException:
            self._end()
            raise
        self.start_time = time.perf_counter() - began
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._end() != 0 and error is None:
            raise DaemonFailed(f"the daemon ended with status {self._process.returncode}")

    def _end(self) -> int:
        self._process.terminate()
        try:
            return self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _is_healthy(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except ConnectionError:
            return False
        finally:
            connection.close()


def neutral_environment() -> dict[str, str]:
    """Ours without settings of this user, or of an agent around us: they would measure another store and project."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "CLAUDE"))}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
