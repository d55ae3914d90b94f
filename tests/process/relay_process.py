"""A real `holdfast mcp` process for tests; where it would start a daemon, a script of the test's runs."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]

LIMIT = 60.0
RUN = "import sys; sys.executable = sys.argv.pop(1); from holdfast.__main__ import main; sys.exit(main())"
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "CLAUDE"))}


class RelayProcess:
    """An agent's view of the relay it spawned."""

    def __init__(
        self,
        home: Path,
        *args: str,
        starter: Path | None = None,
        env: dict[str, str] | None = None,
        reading: bool = True,
    ) -> None:
        self.home = home
        self.starter = starter or recording_starter(home.parent)
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUN, str(self.starter), "mcp", *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**CLEAN, "HOLDFAST_HOME": str(home), **(env or {})},
        )
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self.stdin, self.stdout, self.stderr = self.process.stdin, self.process.stdout, self.process.stderr
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._errors: list[bytes] = []
        self._threads: list[threading.Thread] = []
        self._start(self._read_errors)
        if reading:
            self.start_reading()

    def __enter__(self) -> RelayProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(LIMIT)
        for thread in self._threads:
            thread.join(LIMIT)
        for stream in (self.stdin, self.stdout, self.stderr):
            try:
                stream.close()
            except BrokenPipeError:
                continue  # what the killed relay had not read is of no use to anybody

    def start_reading(self) -> None:
        """Begin to take what the relay writes, when it was started with an agent that does not."""
        self._start(self._read_output)

    def write(self, *bodies: Json) -> None:
        """Send messages as the agent does, one line each."""
        self.write_raw(b"".join(json.dumps(body).encode() + b"\n" for body in bodies))

    def write_raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.stdin.write(data)
        self.stdin.flush()

    def read(self) -> Json:
        """The next message the relay writes."""
        line = self._lines.get(timeout=LIMIT)
        assert line is not None, f"the relay closed its output: {self.errors()}"
        body: Json = json.loads(line)
        return body

    def read_until_answer(self, id: int | str) -> list[Json]:
        """All messages up to the answer to request `id`."""
        seen = [self.read()]
        while not (seen[-1].get("id") == id and "method" not in seen[-1]):
            seen.append(self.read())
        return seen

    def hang_up(self) -> int:
        """Close the relay's input and wait for its end; the exit status."""
        self.stdin.close()
        return self.process.wait(LIMIT)

    def rest(self) -> list[Json]:
        """What the relay still wrote before it ended."""
        bodies: list[Json] = []
        while (line := self._lines.get(timeout=LIMIT)) is not None:
            bodies.append(json.loads(line))
        return bodies

    def peak_kib(self) -> int:
        """The most memory the relay ever had; where the system does not say, what it has now."""
        status = Path(f"/proc/{self.process.pid}/status")
        if status.exists():
            return int(status.read_text().partition("VmHWM:")[2].split()[0])
        (size,) = [kib for pid, kib in ps("pid", "rss") if pid == self.process.pid]
        return size

    def errors(self) -> str:
        """What the relay has written to its standard error so far."""
        return b"".join(self._errors).decode()

    def _start(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _read_output(self) -> None:
        for line in self.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _read_errors(self) -> None:
        for line in self.stderr:
            self._errors.append(line)


def ps(*columns: str) -> list[list[int]]:
    """These columns of every process, as numbers."""
    table = subprocess.run(["ps", "-A", "-o", "=,".join(columns) + "="], capture_output=True, text=True, check=True)
    return [[int(field) for field in row.split()] for row in table.stdout.splitlines()]


def recording_starter(directory: Path) -> Path:
    """A stand-in for python that notes how it was started, and starts nothing."""
    script = directory / "starter"
    script.write_text(f'#!/bin/sh\npwd >> "{directory}/started"\necho "$*" >> "{directory}/started"\n')
    script.chmod(0o755)
    return script


def eventually(condition: Callable[[], object], what: str) -> None:
    """Wait until `condition` holds; fails after a limit no working system reaches."""
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.01)
