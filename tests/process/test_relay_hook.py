"""The hook client as an agent runs it: a plain file, and a daemon that may be slow, strange or gone."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.process.relay_process import CLEAN, LIMIT, eventually

import holdfast.relay

HOOK = Path(holdfast.relay.__file__).parent / "hook.py"
PAYLOAD = b'{"session_id":"s","hook_event_name":"Stop"}'

# Stands where `python -m holdfast serve` would: notes how it was started, and serves one hook.
STARTED_DAEMON = """
import json, os, socket, sys
home = sys.argv[sys.argv.index("--home") + 1]
listener = socket.socket(socket.AF_UNIX)
listener.settimeout(30)
listener.bind(home + "/daemon.sock")
listener.listen()
connection, _ = listener.accept()
asked = b""
while chunk := connection.recv(65536):
    asked += chunk
started = {"argv": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ)}
connection.sendall(b"exit 0\\n" + json.dumps(started).encode())
connection.close()
"""


class HookDaemon:
    """Answers each hook with the same bytes, or never."""

    def __init__(self, home: Path, answer: bytes | None) -> None:
        self.asked: list[bytes] = []
        self._answer = answer
        self._done = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(home / "daemon.sock"))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._done.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(LIMIT)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                asked = b""
                while chunk := connection.recv(65536):
                    asked += chunk
                self.asked.append(asked)
                if self._answer is None:
                    self._done.wait(LIMIT)
                else:
                    connection.sendall(self._answer)


@contextlib.contextmanager
def hook_daemon(home: Path, answer: bytes | None) -> Iterator[HookDaemon]:
    daemon = HookDaemon(home, answer)
    try:
        yield daemon
    finally:
        daemon.close()


def run_hook(
    home: Path, event: str, *, payload: bytes = PAYLOAD, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-I", "-S", str(HOOK), event],
        input=payload,
        capture_output=True,
        env={**CLEAN, "HOLDFAST_HOME": str(home), **(env or {})},
        timeout=LIMIT,
        check=False,
    )


def test_the_daemon_gets_the_event_and_the_raw_input_and_its_answer_is_printed(tmp_path: Path) -> None:
    payload = b'\xff{"any": "bytes"}\n' * 50_000
    with hook_daemon(tmp_path, b'exit 0\n{"a":1}\nsecond line') as daemon:
        done = run_hook(tmp_path, "PreToolUse", payload=payload, env={"CLAUDE_PID": "4711"})
        assert (done.returncode, done.stdout, done.stderr) == (0, b'{"a":1}\nsecond line', b"")
        (asked,) = daemon.asked
        header, _, rest = asked.partition(b"\n")
        said = json.loads(header)
        assert said.pop("by") and said == {"holdfast": "hook", "event": "PreToolUse", "pid": "4711"}
        assert rest == payload


@pytest.mark.parametrize("status", [0, 2])
def test_the_hook_ends_as_the_daemon_says(tmp_path: Path, status: int) -> None:
    with hook_daemon(tmp_path, b"exit %d\n" % status):
        done = run_hook(tmp_path, "Stop")
        assert (done.returncode, done.stdout) == (status, b"")


@pytest.mark.parametrize("pid", ["12x", '1","a":"', "", "-1", "9" * 30])
def test_a_pid_that_is_not_one_is_left_out(tmp_path: Path, pid: str) -> None:
    with hook_daemon(tmp_path, b"exit 0\n") as daemon:
        assert run_hook(tmp_path, "Stop", env={"CLAUDE_PID": pid}).returncode == 0
        assert json.loads(daemon.asked[0].splitlines()[0])["pid"] == ""


def check_failed_open(done: subprocess.CompletedProcess[bytes], says: str) -> None:
    assert (done.returncode, done.stdout) == (0, b"")
    (line,) = done.stderr.decode().splitlines()
    assert says in line
    assert "The agent goes on without it." in line


@pytest.mark.parametrize("answer", [b"", b"exit 0", b"exit x\n", b"exit 256\n", b"HTTP/1.1 200 OK\r\n"])
def test_an_answer_that_is_none_fails_open(tmp_path: Path, answer: bytes) -> None:
    with hook_daemon(tmp_path, answer):
        check_failed_open(run_hook(tmp_path, "Stop"), "cut off")


def test_a_daemon_that_does_not_answer_fails_open(tmp_path: Path) -> None:
    with hook_daemon(tmp_path, None):
        check_failed_open(run_hook(tmp_path, "Stop", env={"HOLDFAST_HOOK_TIMEOUT": "0.3"}), "in time")


def test_an_input_that_never_ends_fails_open(tmp_path: Path) -> None:
    with hook_daemon(tmp_path, b"exit 0\n"):
        reader, writer = os.pipe()
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", str(HOOK), "Stop"],
                stdin=reader,
                capture_output=True,
                env={**CLEAN, "HOLDFAST_HOME": str(tmp_path), "HOLDFAST_HOOK_TIMEOUT": "0.3"},
                timeout=LIMIT,
                check=False,
            )
        finally:
            os.close(reader)
            os.close(writer)
        check_failed_open(done, "the input did not end in time")


def test_an_input_over_the_limit_fails_open(tmp_path: Path) -> None:
    with hook_daemon(tmp_path, b"exit 0\n") as daemon:
        check_failed_open(run_hook(tmp_path, "Stop", payload=b"x" * (16 * 1024 * 1024 + 1)), "16777216 bytes")
        assert daemon.asked == []


@pytest.mark.parametrize("event", ["", "a b", "x" * 41, "Stop\n", "é", '"'])
def test_an_event_that_is_none_fails_open_and_asks_nobody(tmp_path: Path, event: str) -> None:
    with hook_daemon(tmp_path, b"exit 2\n") as daemon:
        check_failed_open(run_hook(tmp_path, event), "EVENT")
        assert daemon.asked == []


@pytest.mark.parametrize("limit", ["soon", "0", "nan", "1e9"])
def test_a_time_limit_that_is_none_fails_open(tmp_path: Path, limit: str) -> None:
    done = run_hook(tmp_path, "Stop", env={"HOLDFAST_HOOK_TIMEOUT": limit})
    check_failed_open(done, "HOLDFAST_HOOK_TIMEOUT")


def test_without_a_daemon_a_hook_fails_open_and_starts_none(tmp_path: Path) -> None:
    check_failed_open(run_hook(tmp_path, "PreToolUse"), "no daemon is running")
    assert list(tmp_path.iterdir()) == []


def test_a_socket_left_by_a_dead_daemon_fails_open(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "daemon.sock"))
    check_failed_open(run_hook(tmp_path, "Stop"), "no daemon is running")


def test_the_start_of_a_session_starts_a_daemon_and_asks_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    package = tmp_path / "path" / "holdfast"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(STARTED_DAEMON)
    env = {"PYTHONPATH": str(package.parent), "CLAUDE_CODE_SESSION_ID": "s-1"}
    done = run_hook(home, "SessionStart", env=env)
    if b"still starting" in done.stderr:  # a loaded machine; the daemon that was started serves the next hook
        done = run_hook_when_served(home, env)
    started = json.loads(done.stdout)
    assert started["argv"] == ["serve", "--detach", "--home", str(home)]
    assert started["cwd"] == "/"
    assert "CLAUDE_CODE_SESSION_ID" not in started["env"]
    assert home.stat().st_mode & 0o777 == 0o700


def run_hook_when_served(home: Path, env: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    eventually(lambda: (home / "daemon.sock").exists(), "the daemon that was started listens")
    return run_hook(home, "Stop", env=env)


def test_the_start_of_a_session_starts_no_daemon_that_was_stopped(tmp_path: Path) -> None:
    (tmp_path / "stopped").write_text("")
    check_failed_open(run_hook(tmp_path, "SessionStart"), "holdfast serve")
    assert [path.name for path in tmp_path.iterdir()] == ["stopped"]


def test_a_person_runs_the_same_hook(tmp_path: Path) -> None:
    with hook_daemon(tmp_path, b"exit 2\nfor people"):
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", "hook", "Stop"],
            input=PAYLOAD,
            capture_output=True,
            env={**CLEAN, "HOLDFAST_HOME": str(tmp_path)},
            timeout=LIMIT,
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, b"for people")
