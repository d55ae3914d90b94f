"""A newer version takes over from an older daemon, and nothing else takes the daemon away."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.installation import Installation
from tests.process.agent import Agent

from holdfast.version import __version__ as holdfast_version

NEWER_RELAY = [sys.executable, "-P", "-m", "holdfast", "mcp"]


def _status(holdfast: Installation) -> dict[str, Any]:
    shown = holdfast.run("status", "--json")
    assert shown.returncode == 0, shown.stderr
    return dict(json.loads(shown.stdout))


def _newer_copy(folder: Path) -> Path:
    """The same program, but of a later version."""
    import holdfast

    package = Path(str(holdfast.__file__)).parent
    shutil.copytree(package, folder / "holdfast")  # with what is compiled: its sources have the same times here
    version = folder / "holdfast" / "version.py"
    version.write_text(version.read_text().replace(f'"{holdfast_version}"', '"99.1.0"'))
    return folder


def test_a_newer_relay_takes_over_from_an_older_daemon(embedded: Installation, project: Path, tmp_path: Path) -> None:
    newer = _newer_copy(tmp_path / "newer")
    with Agent(embedded, project, session="old") as old:
        old.think("on the old daemon")
        before = _status(embedded)
        with Agent(embedded, project, session="new", command=NEWER_RELAY, env={"PYTHONPATH": str(newer)}) as new:
            new.think("on the new daemon")
            after = _status(embedded)
            assert (before["version"] != "99.1.0", after["version"]) == (True, "99.1.0")
            assert old.think("the old relay goes on")["thoughtNumber"] == 2
        assert old.process.stderr is not None
        old.process.send_signal(signal.SIGTERM)
        assert b"talks to a daemon of version 99.1.0" in old.process.stderr.read()


def _say(holdfast: Installation, line: dict[str, Any]) -> dict[str, Any]:
    """Say one line to the daemon as any process of this user can, hang up, and return what it answered."""
    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(60)
        door.connect(str(holdfast.home / "daemon.sock"))
        door.sendall(json.dumps(line).encode() + b"\n")
        with door.makefile("rb") as answers:
            return dict(json.loads(answers.readline() or b"{}"))


def _hello(version: str, **env: str) -> dict[str, Any]:
    own = {"pid": os.getpid(), "ppid": os.getppid()}
    return {"holdfast": "relay", "version": version, "relay": "somebody", "cwd": "/", "env": env, **own}


@pytest.mark.parametrize("version", ["99.0", "\u00b2.0"])
def test_a_hello_alone_takes_the_daemon_from_nobody(embedded: Installation, project: Path, version: str) -> None:
    """Whoever claims to be newer gets the daemon's place only for a daemon of that version that waits for it."""
    with Agent(embedded, project) as agent:
        agent.think("before")
        before = _status(embedded)
        _say(embedded, _hello(version))
        assert agent.think("after the hello")["thoughtNumber"] == 2
        after = _status(embedded)
        assert after["pid"] == before["pid"]
        told = [notice for notice in after["notices"] if version in notice]
        assert bool(told) == (version == "99.0"), after["notices"]
        assert not told or "daemon.log" in told[0]


def test_a_successor_that_goes_away_leaves_the_daemon_serving(embedded: Installation, project: Path) -> None:
    with Agent(embedded, project) as agent:
        agent.think("before")
        pid = _status(embedded)["pid"]
        refused = _say(embedded, {"holdfast": "successor", "version": "0.0.0"})
        assert refused["holdfast"] == "refused" and "not older" in refused["message"]
        assert _status(embedded)["pid"] == pid
        # The same from one that is newer and ends at once: at worst the daemon was quicker, and is back at once.
        asking = {"holdfast": "successor", "version": "99.0"}
        assert _say(embedded, asking) == {"holdfast": "making-room"}
        assert agent.think("served all the same")["thoughtNumber"] == 2


def test_a_successor_that_only_asks_and_never_serves_keeps_nobody_waiting(
    embedded: Installation, project: Path
) -> None:
    with Agent(embedded, project) as agent, socket.socket(socket.AF_UNIX) as door:
        agent.think("before")
        door.settimeout(60)
        door.connect(str(embedded.home / "daemon.sock"))
        door.sendall(b'{"holdfast": "successor", "version": "99.0"}\n')
        assert b"making-room" in door.recv(1000)
        assert door.recv(1000) == b"", "the daemon left"
        assert agent.think("the relay started another")["thoughtNumber"] == 2


def test_a_newer_daemon_that_cannot_start_takes_the_old_one_from_nobody_and_its_agent_is_told_why(
    embedded: Installation, project: Path, tmp_path: Path
) -> None:
    newer = _newer_copy(tmp_path / "newer")
    (newer / "holdfast" / "daemon" / "serve.py").write_text("raise ImportError('half of it is not installed')\n")
    env = {"PYTHONPATH": str(newer), "HOLDFAST_DAEMON_WAIT": "3"}
    with Agent(embedded, project, session="old") as old:
        old.think("on the old daemon")
        pid = _status(embedded)["pid"]
        with Agent(embedded, project, session="new", command=NEWER_RELAY, env=env) as new:
            refused = new.answer(new.ask("tools/call", {"name": "init", "arguments": {"operation": "get_state"}}))
            message = refused["error"]["message"]
            assert "99.1.0" in message and "daemon.log" in message, message
            assert old.think("nothing happened to the old one")["thoughtNumber"] == 2
            assert _status(embedded)["pid"] == pid
        assert "half of it is not installed" in (embedded.home / "daemon.log").read_text()


def test_a_managed_agent_of_a_newer_version_is_served_by_the_daemon_that_runs_it(
    embedded: Installation, project: Path, tmp_path: Path
) -> None:
    """Its relay starts no daemon, because that one would end with the agent."""
    newer = _newer_copy(tmp_path / "newer")
    env = {"PYTHONPATH": str(newer), "HOLDFAST_MANAGED": "1"}
    with Agent(embedded, project, session="old") as old:
        old.think("on the old daemon")
        pid = _status(embedded)["pid"]
        with Agent(embedded, project, session="new", command=NEWER_RELAY, env=env) as new:
            new.think("on the same one")
        assert _status(embedded)["pid"] == pid
