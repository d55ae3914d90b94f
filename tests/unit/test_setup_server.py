"""What an agent is told to start: this Holdfast, or whatever a shared file finds."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.agents.claude.program import find_claude
from holdfast.setup.server import is_ours, of_any_machine, of_this_machine

DISCOVER = '{"jsonrpc":"2.0","id":"probe-1","method":"server/discover","params":{"_meta":{"version":"2026-07-28"}}}'
HELLO = (
    '{"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    '"clientInfo":{"name":"x","version":"1"}},"jsonrpc":"2.0","id":%s}'
)
INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}'


def started(path: str, *lines: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", *of_any_machine().args],
        env={"PATH": path},
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("number", ["0", "17", '"a-1"'])
def test_without_holdfast_a_shared_server_says_hello_and_offers_nothing(number: str) -> None:
    done = started("/usr/bin:/bin", DISCOVER, HELLO % number, INITIALIZED)
    refusal, answer = map(json.loads, done.stdout.splitlines())
    assert (done.returncode, done.stderr) == (0, "")
    assert (refusal["id"], refusal["error"]["code"]) == ("probe-1", -32601)
    assert answer["id"] == json.loads(number)
    assert answer["result"]["capabilities"] == {}


def test_without_holdfast_a_shared_server_answers_at_once_and_stays() -> None:
    with subprocess.Popen(
        ["/bin/sh", *of_any_machine().args],
        env={"PATH": "/usr/bin:/bin"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        for number in range(3):
            server.stdin.write(HELLO % number + "\n")
            server.stdin.flush()
            assert json.loads(server.stdout.readline())["id"] == number
        assert server.poll() is None


def test_a_shared_server_is_the_holdfast_on_the_path(tmp_path: Path) -> None:
    program = tmp_path / "holdfast"
    program.write_text('#!/bin/sh\necho "started: $*"\n')
    program.chmod(0o755)
    assert started(f"{tmp_path}:/usr/bin:/bin").stdout == "started: mcp\n"


@pytest.mark.parametrize(
    ("entry", "ours"),
    [
        (of_this_machine(None).entry(), True),
        (of_any_machine().entry(), True),
        ({"command": "holdfast", "args": ["mcp"]}, True),
        ({"command": "/usr/local/bin/holdfast", "args": ["mcp", "--toolsets", "all"]}, True),
        ({"command": "uv", "args": ["run", "holdfast", "mcp"]}, True),
        ({"command": ["python", "-m", "holdfast", "mcp"]}, True),
        ({"command": "holdfaster", "args": ["mcp"]}, False),
        ({"command": "holdfast", "args": ["serve"]}, False),
        ({"type": "http", "url": "http://127.0.0.1:8181/mcp"}, False),
        ({"command": 1, "args": 2}, False),
        ("holdfast mcp", False),
        (None, False),
    ],
)
def test_ours_is_what_starts_a_holdfast(entry: Any, ours: bool) -> None:
    assert is_ours(entry) is ours


@pytest.mark.parametrize("place", ["bin/claude", ".local/bin/claude", ".claude/local/claude", None])
def test_claude_is_found_on_the_path_or_where_installers_put_it(tmp_path: Path, place: str | None) -> None:
    env = {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin")}
    if place is None:
        assert find_claude(env) is None
        return
    program = tmp_path / place
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    assert find_claude(env) is None
    program.chmod(0o755)
    assert find_claude(env) == program
    assert os.access(program, os.X_OK)
