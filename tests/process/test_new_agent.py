"""A new kind of agent, as one folder (`tests/agents/echo/`) and one line of registration, works everywhere."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.agents.echo import offered
from tests.agents.echo.hooks import EVENTS
from tests.installation import PATIENCE, Installation
from tests.process.agent import Agent


@pytest.fixture
def newcomer(embedded: Installation, tmp_path: Path) -> Installation:
    """A running Holdfast in which the agent is registered, with one team that uses it."""
    embedded.settings |= {**offered(), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
    embedded.home.mkdir(mode=0o700)
    teams = {name: {"project": str(tmp_path / name), "agent": "echo"} for name in ("mine", "theirs")}
    (embedded.home / "teams.json").write_text(json.dumps({"teams": teams}))
    embedded.serve()
    return embedded


def findings(holdfast: Installation, link: str) -> list[dict[str, Any]]:
    found = json.loads(holdfast.run("doctor", "--json").stdout)["findings"]
    return [finding for finding in found if finding["link"] == link]


def test_it_is_set_up_looked_at_and_removed(newcomer: Installation, tmp_path: Path) -> None:
    file = tmp_path / ".echo" / "config.json"
    done = newcomer.run("setup", "echo", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(json.loads(file.read_text())["hooks"]) == set(EVENTS)

    assert any(str(file) in one["text"] and one["mark"] == "ok" for one in findings(newcomer, "mcp server"))
    (hooks,) = [one for one in findings(newcomer, "hooks") if str(file) in one["text"]]
    assert hooks["mark"] == "ok" and "begin echo" in hooks["text"] and "answered" in hooks["text"]

    written = json.loads(file.read_text())
    written["hooks"]["begin"] = written["hooks"]["begin"].replace("/launcher.sh", "/gone/launcher.sh")
    file.write_text(json.dumps(written))
    assert any(
        one["mark"] == "fault" and one["fixable"] for one in findings(newcomer, "hooks") if str(file) in one["text"]
    )
    newcomer.run("doctor", "--fix")
    assert all(one["mark"] == "ok" for one in findings(newcomer, "hooks") if str(file) in one["text"])

    assert newcomer.run("setup", "echo", "--remove", "--yes").returncode == 0
    assert not file.exists() or "holdfast" not in file.read_text()


def test_its_hooks_are_answered_in_its_own_form(newcomer: Installation, tmp_path: Path) -> None:
    assert newcomer.run("setup", "echo", "--yes").returncode == 0
    with Agent(newcomer, tmp_path / "mine", session="earlier") as earlier:
        earlier.call("save_task", current_task="Mend the fence")
    commands = json.loads((tmp_path / ".echo" / "config.json").read_text())["hooks"]
    payload = {"session": "later", "directory": str(tmp_path / "mine")}
    told = subprocess.run(
        ["/bin/sh", "-c", commands["begin"]],
        input=json.dumps(payload),
        env=newcomer.environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert told.returncode == 0 and not told.stderr, told.stderr
    assert "Mend the fence" in told.stdout
    assert not told.stdout.startswith("{"), "not in the form of another agent"


def test_a_team_uses_it(newcomer: Installation, tmp_path: Path) -> None:
    with Agent(newcomer, tmp_path / "mine", session="asker") as asker:
        answer = asker.call("teams_ask", team="theirs", question="Is it mended?", timeout=int(PATIENCE * 1000))
    assert answer["status"] == "answered" and "echo 1" in answer["response"], answer
