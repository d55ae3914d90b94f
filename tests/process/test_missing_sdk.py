"""An installation without the claude-agent-sdk: whoever adds, checks or asks a team is told the line that adds it."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from tests.installation import PATIENCE, Installation
from tests.process.agent import Agent

WITHOUT = 'import sys\n\nsys.modules["claude_agent_sdk"] = None\n'


@pytest.fixture
def bare(embedded: Installation, tmp_path: Path) -> Installation:
    """A Holdfast whose Python finds no claude-agent-sdk, with two teams."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(WITHOUT)
    embedded.settings |= {"PYTHONPATH": str(hidden), "HOME": str(tmp_path)}
    for name in ("web", "api"):
        (tmp_path / name).mkdir()
    return embedded


def add(holdfast: Installation, name: str, place: Path) -> str:
    added = holdfast.run("teams", "add", name, "--project", str(place / name))
    assert added.returncode == 0, added.stderr
    return added.stdout


def is_told(text: str) -> bool:
    """Whether a text says what is missing, and the very line that adds it to this installation."""
    _, found, line = text.partition("The claude-agent-sdk is not installed here. Add it: `")
    words = shlex.split(line.partition("`")[0])
    return bool(found) and words[:4] == [sys.executable, "-m", "pip", "install"] and words[4].startswith("claude-agent")


def test_without_the_sdk_every_door_to_teams_says_so_with_the_line_that_adds_it(
    bare: Installation, tmp_path: Path
) -> None:
    assert all(is_told(add(bare, name, tmp_path)) for name in ("web", "api"))
    unserved = bare.run("teams", "check")
    assert unserved.returncode == 1 and is_told(unserved.stdout), unserved.stdout
    assert "web, api: " in unserved.stdout and "0 of 2 teams can be served" in unserved.stdout
    bare.serve()
    assert bare.run("teams", "check").stdout == unserved.stdout, "a daemon says the same"
    asked = bare.run("teams", "ask", "api", "Is anybody there?", "--timeout", f"{PATIENCE:g}")
    assert asked.returncode == 1 and is_told(asked.stderr), asked.stderr
    assert is_told(bare.run("teams", "status").stdout)
    with Agent(bare, tmp_path / "web", session="web") as web:
        assert is_told(web.refused("teams_ask", team="api", question="Is anybody there?"))
        assert all(is_told(team["fault"]) for team in web.call("teams_status")["teams"])
    examined = bare.run("doctor", "--json")
    (found,) = [one for one in json.loads(examined.stdout)["findings"] if one["link"] == "teams"]
    assert examined.returncode == 1 and found["mark"] == "fault"
    assert is_told(f"{found['text'].partition(': ')[2]}. {found['repair']}"), found


def test_with_the_sdk_no_word_is_said_of_it(embedded: Installation, tmp_path: Path) -> None:
    embedded.settings["HOME"] = str(tmp_path)
    (tmp_path / "web").mkdir()
    assert not is_told(add(embedded, "web", tmp_path))
    checked = embedded.run("teams", "check")
    assert checked.returncode == 0 and "1 of 1 teams can be served" in checked.stdout
