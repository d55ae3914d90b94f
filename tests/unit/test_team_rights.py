"""Rights in teams.json count only as a person confirmed them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from tests.agents.echo import registered

from holdfast.teams.config import SETTINGS, TEAM_FIELDS, read_config
from holdfast.teams.config_file import TeamsFile
from holdfast.teams.confirmation import FILE_NAME, HARMLESS, HARMLESS_SETTINGS, digest_of
from holdfast.teams.team import Delivery, Team, TeamSettings

WIDER: dict[str, Any] = {
    "skipPermissions": True,
    "allowedTools": ["Bash"],
    "policy": "ask",
    "env": {"PATH": "/elsewhere"},
    "chat": {"id": -1, "allowedUsers": [666]},
    "model": "opus",
    "sessionFile": "/elsewhere",
    "stateFile": "/elsewhere",
    "delivery": "run",
}
"""What gives a team more than its project alone."""
LIMITS: dict[str, tuple[Any, Any]] = {
    "disallowedTools": (["Bash"], ["Read"]),
    "maxCostUsdPerDay": (1, 1000),
    "delivery": ("hook", "auto"),
    "agent": ("claude", "echo"),
    "machine": ("here", "there"),
}
"""What gives nothing by itself, as it was confirmed and as somebody would have it."""
WIDER_SETTINGS: dict[str, Any] = {"maxProcesses": 256, "maxDepth": 32, "allowedRoots": ["/"]}


@pytest.fixture(autouse=True)
def another_agent() -> Iterator[None]:
    """A second agent that a team may name."""
    with registered():
        yield


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "home").mkdir(mode=0o700)
    return tmp_path / "home"


def write(home: Path, settings: dict[str, Any] | None = None, **fields: Any) -> None:
    team = {"project": str(home.parent / "project"), **fields}
    fresh = home.parent / "fresh"
    fresh.write_text(json.dumps({"settings": settings or {}, "teams": {"a": team}}))
    fresh.rename(home / "teams.json")


def test_every_field_and_setting_needs_a_word_unless_it_is_listed_as_harmless() -> None:
    """A new field of teams.json gets a case here, or an entry in HARMLESS with a reason."""
    assert set(TEAM_FIELDS) == HARMLESS | set(WIDER) | set(LIMITS)
    assert {f.name for f in fields(Team)} - {"name", "project"} == {name for name, _ in TEAM_FIELDS.values()}
    assert set(SETTINGS) == HARMLESS_SETTINGS | set(WIDER_SETTINGS)
    assert {f.name for f in fields(TeamSettings)} == {name for name, _ in SETTINGS.values()}


@pytest.mark.parametrize("field", WIDER)
@pytest.mark.parametrize("known", [True, False], ids=["changed", "new"])
def test_rights_that_were_widened_do_not_count_until_they_are_confirmed(home: Path, field: str, known: bool) -> None:
    if known:
        write(home, description="as it was")
    TeamsFile(home).begin_confirming()
    write(home, **{field: WIDER[field]})
    file = TeamsFile(home)
    assert file.config.teams["a"] == Team("a", home.parent / "project")
    assert [(fault.team, fault.field) for fault in file.config.unconfirmed] == [("a", "rights")]
    file.confirm(file.waiting())
    assert TeamsFile(home).config.teams["a"] == file.configured.teams["a"] != Team("a", home.parent / "project")
    assert not TeamsFile(home).config.faults


@pytest.mark.parametrize("field", [*LIMITS, *WIDER])
def test_a_change_of_what_was_confirmed_waits_for_a_word(home: Path, field: str) -> None:
    before, after = LIMITS.get(field) or (WIDER[field], None)
    write(home, **{field: before})
    TeamsFile(home).begin_confirming()
    assert not TeamsFile(home).waiting()
    write(home, **{field: after})
    assert [team.name for team in TeamsFile(home).waiting()] == ["a"]


def test_limits_hold_while_a_change_waits(home: Path) -> None:
    write(home, maxCostUsdPerDay=1, delivery="hook", disallowedTools=["Bash"])
    TeamsFile(home).begin_confirming()
    changes: list[dict[str, Any]] = [{}, {"maxCostUsdPerDay": 1000, "delivery": "run", "disallowedTools": ["Read"]}]
    for wider in changes:
        write(home, **wider)
        team = TeamsFile(home).config.teams["a"]
        assert (team.max_cost_usd_per_day, team.delivery) == (1, Delivery.HOOK)
        assert "Bash" in team.disallowed_tools
    write(home, maxCostUsdPerDay=0.5, delivery="hook", disallowedTools=["Bash"])
    assert TeamsFile(home).config.teams["a"].max_cost_usd_per_day == 0.5, "a narrower limit counts at once"


@pytest.mark.parametrize("key", WIDER_SETTINGS)
def test_settings_that_widen_rights_stay_as_they_were_until_confirmed(home: Path, key: str) -> None:
    narrow = {"maxProcesses": 1, "maxDepth": 1, "allowedRoots": [str(home.parent / "project")]}
    write(home, narrow)
    TeamsFile(home).begin_confirming()
    write(home, {**narrow, key: WIDER_SETTINGS[key], "idleTimeout": 12345})
    file = TeamsFile(home)
    assert file.config.settings == TeamSettings(
        idle_timeout_ms=12345, max_processes=1, max_depth=1, allowed_roots=(home.parent / "project",)
    )
    assert [fault.field for fault in file.config.unconfirmed] == [f"settings.{key}"]
    assert file.waiting_settings() == {key: WIDER_SETTINGS[key]}
    file.confirm([], file.configured.settings)
    assert TeamsFile(home).config == TeamsFile(home).configured


def test_a_team_outside_the_confirmed_roots_is_not_served(home: Path) -> None:
    write(home, {"allowedRoots": [str(home.parent / "project")]})
    TeamsFile(home).begin_confirming()
    (home.parent / "other").mkdir()
    for settings in ({}, {"allowedRoots": ["/"]}):
        write(home, settings, project=str(home.parent / "other"))
        file = TeamsFile(home)
        assert not file.config.teams and file.config.refused == ("a",)
        file.confirm(file.waiting())
        assert not TeamsFile(home).config.teams, "a word for the team is none for the roots"


def test_what_is_there_at_the_first_start_counts(home: Path) -> None:
    write(home, skipPermissions=True, disallowedTools=["Bash"])
    assert TeamsFile(home).config.teams["a"].skip_permissions
    file = TeamsFile(home)
    file.begin_confirming()
    file.begin_confirming()
    assert TeamsFile(home).config.teams["a"].skip_permissions


def test_a_tool_that_was_disallowed_stays_so_while_a_change_waits(home: Path) -> None:
    write(home, disallowedTools=["Bash"])
    TeamsFile(home).begin_confirming()
    write(home)
    file = TeamsFile(home)
    assert file.config.teams["a"].disallowed_tools == ("Bash",)
    assert [team.name for team in file.waiting()] == ["a"]


def test_another_project_under_confirmed_rights_needs_a_word(home: Path) -> None:
    write(home, skipPermissions=True)
    TeamsFile(home).begin_confirming()
    (home.parent / "other").mkdir()
    write(home, skipPermissions=True, project=str(home.parent / "other"))
    assert not TeamsFile(home).config.teams["a"].skip_permissions


def test_a_change_of_what_gives_no_rights_needs_no_word(home: Path) -> None:
    write(home, skipPermissions=True)
    TeamsFile(home).begin_confirming()
    write(home, skipPermissions=True, description="another", color="#000000")
    file = TeamsFile(home)
    assert file.config.teams["a"].skip_permissions and not file.waiting()


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"a": 1}', '{"teams": {}}', '{"teams": {"a": {"digest": "x"}}, "settings": {}}']
)
def test_a_damaged_file_of_confirmations_confirms_nothing(home: Path, content: str) -> None:
    write(home, skipPermissions=True)
    TeamsFile(home).begin_confirming()
    (home / FILE_NAME).write_text(content)
    assert not TeamsFile(home).config.teams["a"].skip_permissions


def test_a_daemon_that_follows_the_file_sees_the_word(home: Path) -> None:
    TeamsFile(home).begin_confirming()
    write(home, skipPermissions=True)
    following = TeamsFile(home)
    other = TeamsFile(home)
    other.confirm(other.waiting())
    assert following.refresh()
    assert following.config.teams["a"].skip_permissions


def test_an_upgrade_asks_for_no_word_again(tmp_path: Path) -> None:
    """Digests as earlier versions wrote them beside these very teams."""
    full = {
        "project": "/srv/backend",
        "machine": "elsewhere",
        "description": "Backend",
        "skipPermissions": True,
        "color": "#E91E63",
        "agent": "echo",
        "model": "opus",
        "env": {"NODE_ENV": "test"},
        "allowedTools": ["Read", "Bash(git status)"],
        "disallowedTools": ["WebFetch"],
        "policy": "ask",
        "maxCostUsdPerDay": 5,
        "chat": {"id": -1001234567890, "topic": 7, "allowedUsers": [12345]},
        "sessionFile": ".session",
        "stateFile": "/var/state.json",
        "delivery": "hook",
    }
    bare = {"path": "/srv/web", "machine": "elsewhere"}
    config = read_config(json.dumps({"teams": {"full": full, "bare": bare}}), home=tmp_path)
    assert {name: digest_of(team) for name, team in config.teams.items()} == {
        "full": "22660f7b459948b5d6f0dba5014804c6d95e43b192da4a3d1d9d01288f2aabe6",
        "bare": "4c3ca8af37093f1d53e6f572dd8189f205e32c5a61b200855b23c5ce6e086cf0",
    }
