"""`holdfast bridge init`: hooks for a project's live agent, beside those of other purposes."""

from __future__ import annotations

import argparse
import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from tests.repository import Repository

from holdfast.agents.claude.settings import LOCAL, PURPOSES, SHARED, installed, is_installed, removed
from holdfast.cli import bridge_init
from holdfast.errors import BadInput

EVENTS = {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"}


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Somebody without Claude Code's own command; the file of their MCP servers."""
    place = tmp_path / "user"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    return place / ".claude.json"


def servers_of(user: Path, project: Path) -> dict[str, Any]:
    """The servers that Claude Code starts for this user in a project."""
    content = json.loads(user.read_text()) if user.exists() else {}
    return dict(content.get("projects", {}).get(str(project), {}).get("mcpServers", {}))


def matchers(project: Path) -> dict[str, list[str | None]]:
    section = json.loads((project / LOCAL).read_text()).get("hooks", {})
    return {event: [group.get("matcher") for group in groups] for event, groups in section.items()}


def init(project: Path, home: Path, *more: str) -> int:
    parser = argparse.ArgumentParser()
    bridge_init.add_to(parser.add_subparsers())
    options = parser.parse_args(["init", str(project), "--home", str(home), *more])
    return int(options.run(options))


def add_team(home: Path, project: Path, **more: str) -> None:
    home.mkdir(exist_ok=True)
    (home / "teams.json").write_text(json.dumps({"teams": {"homelab": {"project": str(project), **more}}}))


@pytest.mark.parametrize(("first", "second"), list(permutations(["protocol", "bridge"])))
def test_taking_one_purpose_out_leaves_the_other_whole(tmp_path: Path, first: str, second: str) -> None:
    installed(tmp_path, PURPOSES[second]).write()
    alone = matchers(tmp_path)
    installed(tmp_path, PURPOSES[first]).write()
    assert not installed(tmp_path, PURPOSES[second]).needed
    removed(tmp_path, PURPOSES[first]).write()
    assert matchers(tmp_path) == alone
    removed(tmp_path, PURPOSES[second]).write()
    assert matchers(tmp_path) == {}


@pytest.mark.parametrize("file", [LOCAL, SHARED])
def test_a_purpose_is_installed_when_all_of_its_hooks_are(tmp_path: Path, file: str) -> None:
    assert not is_installed(tmp_path, "bridge")
    installed(tmp_path, PURPOSES["protocol"], file=file).write()
    assert (is_installed(tmp_path, "protocol"), is_installed(tmp_path, "bridge")) == (True, False)
    installed(tmp_path, PURPOSES["bridge"], file=file).write()
    assert is_installed(tmp_path, "bridge")
    (tmp_path / file).write_text("{")
    assert not is_installed(tmp_path, "bridge")


def test_every_tool_is_heard_of(tmp_path: Path) -> None:
    installed(tmp_path, PURPOSES["bridge"]).write()
    assert matchers(tmp_path) == {event: [None] for event in EVENTS}


def test_hooks_are_installed_and_taken_out_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home, project = tmp_path / "home", Repository(tmp_path / "project")
    add_team(home, project.path)
    assert init(project.path, home) == 0
    assert matchers(project.path).keys() == EVENTS
    assert f"export HOLDFAST_HOME={home};" in (project.path / LOCAL).read_text()
    assert project.git("status", "--porcelain") == ""
    told = capsys.readouterr()
    assert "Messages for homelab are delivered to the agent that works here." in told.out
    assert told.err == ""
    assert init(project.path, home) == 0
    assert "are up to date" in capsys.readouterr().out
    assert init(project.path, home, "--remove") == 0
    assert matchers(project.path) == {}


def test_a_project_inside_a_repository_stays_out_of_git_too(tmp_path: Path) -> None:
    home, project = tmp_path / "home", Repository(tmp_path / "project", {"part/x": "x"})
    add_team(home, project.path)
    assert init(project.path / "part", home) == 0
    assert matchers(project.path / "part").keys() == EVENTS
    assert project.git("status", "--porcelain") == ""


def test_a_dry_run_shows_the_hooks_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(tmp_path, tmp_path / "home", "--dry-run") == 0
    assert "Would change" in capsys.readouterr().out
    assert not (tmp_path / ".claude").exists()


def test_a_project_without_a_team_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(tmp_path, tmp_path / "home") == 0
    assert "no team" in capsys.readouterr().err


def test_a_team_that_holdfast_runs_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_team(tmp_path / "home", tmp_path, delivery="run")
    assert init(tmp_path, tmp_path / "home") == 0
    assert '"delivery": "run"' in capsys.readouterr().err


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"DIR: .* is not a directory"):
        init(tmp_path / "missing", tmp_path / "home")


def test_the_server_that_the_messages_speak_of_is_registered_once(
    tmp_path: Path, user: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, project = tmp_path / "home", Repository(tmp_path / "project")
    add_team(home, project.path)
    assert init(project.path, home, "--dry-run") == 0
    assert "Would register the MCP server" in capsys.readouterr().out
    assert not user.exists()
    assert init(project.path, home) == 0
    assert "finish_message" in capsys.readouterr().out
    (server,) = servers_of(user, project.path).values()
    assert server["env"]["HOLDFAST_HOME"] == str(home)
    before = user.read_bytes()
    assert init(project.path, home) == 0
    assert "Registering" not in capsys.readouterr().out
    assert user.read_bytes() == before


@pytest.mark.parametrize("own", [True, False], ids=["of the user", "of the project"])
def test_a_server_that_is_registered_already_stays_as_it_is(
    tmp_path: Path, user: Path, capsys: pytest.CaptureFixture[str], own: bool
) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    add_team(home, project)
    server = {"command": "holdfast", "args": ["mcp"], "env": {"HOLDFAST_HOME": str(home)}}
    file = user if own else project / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"holdfast": server}}))
    assert init(project, home) == 0
    assert "Registering" not in capsys.readouterr().out
    assert servers_of(user, project) == {}


def test_what_keeps_the_server_from_being_registered_is_said_and_fails(
    tmp_path: Path, user: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    add_team(home, project)
    user.write_text("{ not json")
    assert init(project, home) == 1
    told = capsys.readouterr().err
    assert "does not have take_message, finish_message and save_task" in told
    assert "holdfast setup claude" in told
    assert matchers(project).keys() == EVENTS


def test_what_init_put_in_is_taken_out_again_and_nothing_else(tmp_path: Path, user: Path) -> None:
    home, project = tmp_path / "home", Repository(tmp_path / "project")
    add_team(home, project.path)
    other = {"command": "elsewhere", "args": []}
    before = {"projects": {str(project.path): {"mcpServers": {"other": other}}}, "theme": "dark"}
    user.write_text(json.dumps(before))
    assert init(project.path, home) == 0
    assert servers_of(user, project.path).keys() == {"other", "holdfast"}
    assert init(project.path, home, "--remove", "--dry-run") == 0
    assert servers_of(user, project.path).keys() == {"other", "holdfast"}
    for _ in range(2):
        assert init(project.path, home, "--remove") == 0
        assert json.loads(user.read_text()) == before


@pytest.mark.parametrize("how", ["by hand", "with setup", "for a project above"])
def test_a_server_that_somebody_else_registered_or_needs_is_not_taken_out(tmp_path: Path, user: Path, how: str) -> None:
    home, project = tmp_path / "home", Repository(tmp_path / "project", {"part/x": "x"})
    add_team(home, project.path)
    place = project.path
    if how == "by hand":
        server = {"command": "holdfast", "args": ["mcp"], "env": {"HOLDFAST_HOME": str(home)}}
        user.write_text(json.dumps({"projects": {str(project.path): {"mcpServers": {"holdfast": server}}}}))
    elif how == "with setup":
        installed(project.path, PURPOSES["briefing"]).write()
    else:
        assert init(project.path, home) == 0
        place = project.path / "part"
    assert init(place, home) == 0
    known = servers_of(user, project.path)
    assert init(place, home, "--remove") == 0
    assert servers_of(user, project.path) == known != {}
