"""`holdfast teams`: what a person sees."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli import teams
from holdfast.errors import BadInput


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def run(home: Path, *arguments: str) -> int:
    parser = argparse.ArgumentParser()
    teams.add_to(parser.add_subparsers())
    options = parser.parse_args(["teams", *arguments, "--home", str(home)])
    status: int = options.run(options)
    return status


def write(home: Path, document: Any) -> None:
    (home / "teams.json").write_text(json.dumps(document))


def test_a_team_is_added_listed_and_removed(home: Path, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(home, "add", "frontend") == 0
    assert capsys.readouterr().out == f"Team frontend works in {project}.\n"
    assert run(home, "list") == 0
    heading, row = capsys.readouterr().out.splitlines()
    assert heading.split() == ["NAME", "PROJECT", "AGENT", "FAULTS"]
    assert row.split() == ["frontend", str(project), "claude", "-"]
    assert run(home, "remove", "frontend") == 0
    capsys.readouterr()
    assert run(home, "list") == 0
    assert "There are no teams yet" in capsys.readouterr().out


def test_the_options_of_add_reach_the_file(home: Path, project: Path) -> None:
    options = ["--project", "..", "--description", "Makes A", "--model", "opus", "--color", "#aabbcc"]
    run(home, "add", "a", *options, "--skip-permissions")
    assert json.loads((home / "teams.json").read_text())["teams"]["a"] == {
        "project": str(project.parent),
        "description": "Makes A",
        "model": "opus",
        "skipPermissions": True,
        "color": "#aabbcc",
    }


def test_a_project_may_be_given_from_the_home_directory(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project.parent))
    run(home, "add", "a", "--project=~/project")
    assert json.loads((home / "teams.json").read_text())["teams"]["a"] == {"project": str(project)}


def test_a_project_that_is_not_there_is_refused(home: Path, project: Path) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        run(home, "add", "a", "--project", "gone")


def test_list_shows_teams_that_cannot_be_served(home: Path, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(home, {"teams": {"a": {"project": str(project)}, "b\x1b": {"color": 5}}})
    assert run(home, "list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["a", str(project), "claude", "-"]
    assert lines[2].split() == ["b\\x1b", "(not", "served)", "-", "3"]
    assert lines[3] == "`holdfast teams check` shows the faults and their repair."


def test_list_as_json_names_what_is_served_and_keeps_secrets(
    home: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {"project": str(project), "env": {"TOKEN": "s3cret"}}
    write(home, {"team": {}, "teams": {"a": entry, "b": {}}})
    assert run(home, "list", "--json") == 0
    out = capsys.readouterr().out
    assert "s3cret" not in out
    shown = json.loads(out)
    a, b = shown["teams"]
    assert (a["name"], a["served"], a["project"], a["env"]) == ("a", True, str(project), ["TOKEN"])
    assert (b["name"], b["served"], b["faults"][0]["field"]) == ("b", False, "project")
    assert shown["faults"][0]["field"] == "team"


@pytest.mark.parametrize(
    ("document", "status", "lines"),
    [
        ({"teams": {"a": {"project": "/"}}}, 0, ["1 of 1 teams can be served."]),
        (
            {"teams": {"a": {"path": "/"}}},
            0,
            ['warning  a.path: is deprecated. Rename it to "project".', "1 of 1 teams can be served."],
        ),
        (
            {"teams": {"a": {"project": "/"}, "b": {}}},
            1,
            ['FAULT    b.project: is missing. Add "project": "/absolute/path".', "1 of 2 teams can be served."],
        ),
        (
            {"settings": {"warmUp": -1}},
            1,
            [
                "FAULT    settings.warmUp: must be a whole number from 0 to 256. Correct it, or leave it out.",
                "0 of 0 teams can be served.",
            ],
        ),
        ([], 1, ['FAULT    teams.json: must be a JSON object. Write {"teams": {}}.', "0 of 0 teams can be served."]),
    ],
)
def test_check_shows_every_fault_with_its_repair(
    home: Path, capsys: pytest.CaptureFixture[str], document: Any, status: int, lines: list[str]
) -> None:
    write(home, document)
    assert run(home, "check") == status
    assert capsys.readouterr().out.splitlines() == [*lines[:-1], f"{home / 'teams.json'}: {lines[-1]}"]


@pytest.mark.parametrize("verb", ["ask", "wait", "cancel", "status", "history", "reset", "add"])
def test_the_help_of_a_command_shows_an_example_of_it(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    teams.add_to(parser.add_subparsers())
    with pytest.raises(SystemExit):
        parser.parse_args(["teams", verb, "--help"])
    assert f"\n  holdfast teams {verb} " in capsys.readouterr().out


def test_without_a_name_a_team_is_called_as_its_project_folder(home: Path, project: Path) -> None:
    for folder in ("my shop", "a/my shop", "…"):
        (project / folder).mkdir(parents=True)
    for folder in ("my shop", "a/my shop"):
        run(home, "add", "--project", str(project / folder))
    assert list(json.loads((home / "teams.json").read_text())["teams"]) == ["my-shop", "a-my-shop"]
    run(home, "add", "--project", "…")
    assert "project" in json.loads((home / "teams.json").read_text())["teams"], "a folder without a usable name"
