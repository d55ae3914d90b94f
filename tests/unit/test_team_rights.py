"""Rights in teams.json count only as a person confirmed them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.teams.confirmation import FILE_NAME
from holdfast.teams.roster_file import RosterFile
from holdfast.teams.team import Policy

WIDER: list[dict[str, Any]] = [
    {"skipPermissions": True},
    {"allowedTools": ["Bash"]},
    {"policy": "ask"},
    {"env": {"PATH": "/elsewhere"}},
    {"chat": {"id": -1, "allowedUsers": [666]}},
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "home").mkdir(mode=0o700)
    return tmp_path / "home"


def write(home: Path, **fields: Any) -> None:
    team = {"project": str(home.parent / "project"), **fields}
    fresh = home.parent / "fresh"
    fresh.write_text(json.dumps({"teams": {"a": team}}))
    fresh.rename(home / "teams.json")


@pytest.mark.parametrize("wider", WIDER, ids=lambda wider: next(iter(wider)))
@pytest.mark.parametrize("known", [True, False], ids=["changed", "new"])
def test_rights_that_were_widened_do_not_count_until_they_are_confirmed(
    home: Path, wider: dict[str, Any], known: bool
) -> None:
    if known:
        write(home, description="as it was")
    RosterFile(home).begin_confirming()
    write(home, **wider)
    file = RosterFile(home)
    team = file.roster.teams["a"]
    assert not (team.skip_permissions or team.allowed_tools or team.env or team.chat) and team.policy is Policy.DENY
    assert [(fault.team, fault.field) for fault in file.roster.faults] == [("a", "rights")]
    file.confirm(file.waiting())
    assert RosterFile(home).roster.teams["a"] == file.configured.teams["a"]
    assert not RosterFile(home).roster.faults


def test_what_is_there_at_the_first_start_counts(home: Path) -> None:
    write(home, skipPermissions=True, disallowedTools=["Bash"])
    assert RosterFile(home).roster.teams["a"].skip_permissions
    file = RosterFile(home)
    file.begin_confirming()
    file.begin_confirming()
    assert RosterFile(home).roster.teams["a"].skip_permissions


def test_a_tool_that_was_disallowed_stays_so_while_a_change_waits(home: Path) -> None:
    write(home, disallowedTools=["Bash"])
    RosterFile(home).begin_confirming()
    write(home)
    file = RosterFile(home)
    assert file.roster.teams["a"].disallowed_tools == ("Bash",)
    assert [team.name for team in file.waiting()] == ["a"]


def test_another_project_under_confirmed_rights_needs_a_word(home: Path) -> None:
    write(home, skipPermissions=True)
    RosterFile(home).begin_confirming()
    (home.parent / "other").mkdir()
    write(home, skipPermissions=True, project=str(home.parent / "other"))
    assert not RosterFile(home).roster.teams["a"].skip_permissions


def test_a_change_of_what_gives_no_rights_needs_no_word(home: Path) -> None:
    write(home, skipPermissions=True)
    RosterFile(home).begin_confirming()
    write(home, skipPermissions=True, description="another", color="#000000")
    file = RosterFile(home)
    assert file.roster.teams["a"].skip_permissions and not file.waiting()


@pytest.mark.parametrize("content", ["", "[]", "{", '{"a": 1}', '{"a": {"digest": "x"}}'])
def test_a_damaged_file_of_confirmations_confirms_nothing(home: Path, content: str) -> None:
    write(home, skipPermissions=True)
    RosterFile(home).begin_confirming()
    (home / FILE_NAME).write_text(content)
    assert not RosterFile(home).roster.teams["a"].skip_permissions


def test_a_daemon_that_follows_the_file_sees_the_word(home: Path) -> None:
    RosterFile(home).begin_confirming()
    write(home, skipPermissions=True)
    following = RosterFile(home)
    other = RosterFile(home)
    other.confirm(other.waiting())
    assert following.refresh()
    assert following.roster.teams["a"].skip_permissions
