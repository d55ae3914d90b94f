"""Hook entries in Claude Code's settings, and the git hook: put in, taken out, nothing else touched."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.repository import Repository

from holdfast.agents.claude import settings as claude_settings
from holdfast.agents.claude.settings import LOCAL, PURPOSES, SHARED, Hook, installed, removed
from holdfast.errors import Conflict
from holdfast.git import directory as git_place
from holdfast.setup.hook_command import command
from holdfast.setup.json_file import SettingsUnusable
from holdfast.setup.launcher import refresh

PROTOCOL = PURPOSES["protocol"]
OTHERS: dict[str, Any] = {
    "permissions": {"allow": ["Bash(ls)"]},
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "their-check"}]}],
        "Stop": [{"hooks": [{"type": "prompt", "prompt": "Is the hook of holdfast done?"}]}],
        "Notification": [],
    },
    "ünïcode": 1.0,
}


def settings_file(project: Path, content: str, file: str = LOCAL) -> Path:
    path = project / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    return path


def handlers(project: Path, event: str) -> list[dict[str, Any]]:
    groups = json.loads((project / LOCAL).read_text())["hooks"][event]
    return [handler for group in groups for handler in group["hooks"]]


def test_every_event_of_a_purpose_is_registered_with_its_matcher(tmp_path: Path) -> None:
    installed(tmp_path, PROTOCOL).write()
    section = json.loads((tmp_path / LOCAL).read_text())["hooks"]
    assert {event: [group.get("matcher") for group in groups] for event, groups in section.items()} == {
        "SessionStart": [None],
        "UserPromptSubmit": [None],
        "PreToolUse": ["Bash"],
        "PostToolUse": ["Read|Bash|mcp__.*"],
        "Stop": [None],
    }
    (handler,) = handlers(tmp_path, "Stop")
    assert (handler["type"], handler["timeout"]) == ("command", 10)
    assert handler["command"] == command("Stop")


def test_installing_twice_changes_nothing(tmp_path: Path) -> None:
    installed(tmp_path, PROTOCOL).write()
    again = installed(tmp_path, PROTOCOL)
    assert not again.needed
    assert again.diff() == ""


def test_what_others_put_there_stays_as_it_was_and_removing_restores_it(tmp_path: Path) -> None:
    before = json.dumps(OTHERS, indent=4, ensure_ascii=False) + "\n"
    path = settings_file(tmp_path, before)
    installed(tmp_path, PROTOCOL).write()
    between = json.loads(path.read_text())
    assert list(between) == list(OTHERS)
    assert between["hooks"]["PreToolUse"][0] == OTHERS["hooks"]["PreToolUse"][0]
    assert '\n    "permissions"' in path.read_text() and "ünïcode" in path.read_text()
    removed(tmp_path).write()
    assert path.read_text() == before


def test_an_entry_of_an_older_installation_is_brought_up_to_date_in_its_place(tmp_path: Path) -> None:
    old = {"type": "command", "command": "/old/python -I -S /old/holdfast/relay/hook.py Stop"}
    theirs = {"type": "command", "command": "theirs"}
    settings_file(tmp_path, json.dumps({"hooks": {"Stop": [{"hooks": [old, theirs]}, {"hooks": [old]}]}}))
    installed(tmp_path, [Hook("Stop")]).write()
    ours, other = handlers(tmp_path, "Stop")
    assert ours["command"] == command("Stop")
    assert other == theirs


def test_only_the_named_hooks_are_removed(tmp_path: Path) -> None:
    installed(tmp_path, PROTOCOL).write()
    removed(tmp_path, claude_settings.TOOLS).write()
    assert json.loads((tmp_path / LOCAL).read_text())["hooks"].keys() == {"SessionStart", "UserPromptSubmit"}


def test_removing_where_nothing_is_writes_nothing(tmp_path: Path) -> None:
    change = removed(tmp_path)
    change.write()
    assert not change.needed
    assert not (tmp_path / ".claude").exists()


def test_a_dry_run_shows_the_change_and_makes_none(tmp_path: Path) -> None:
    change = installed(tmp_path, [Hook("Stop")], file=SHARED)
    assert change.needed
    assert change.diff().startswith(f"--- {os.devnull}\n+++ {tmp_path / SHARED}\n")
    assert '+    "Stop": [' in change.diff()
    assert not (tmp_path / SHARED).exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"hooks": ', "line 1"),
        ('{\n // comment\n "a": 1}', "line 2"),
        ("[]", "JSON object"),
        ('{"hooks": []}', "`hooks`"),
        ('{"hooks": {"Stop": {}}}', "`hooks`"),
        ('{"a": 1, "a": 2}', "twice"),
        ("[" * 100_000, "settings.local.json"),
    ],
)
def test_settings_that_cannot_be_read_are_refused_and_left_as_they_are(tmp_path: Path, content: str, says: str) -> None:
    path = settings_file(tmp_path, content)
    with pytest.raises(SettingsUnusable, match=says):
        installed(tmp_path, PROTOCOL)
    with pytest.raises(SettingsUnusable, match=says):
        removed(tmp_path)
    assert path.read_text() == content


def test_settings_that_are_not_text_are_refused(tmp_path: Path) -> None:
    settings_file(tmp_path, "").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsUnusable, match="UTF-8"):
        installed(tmp_path, PROTOCOL)


@pytest.mark.parametrize("link", [".claude", LOCAL])
def test_a_link_that_leads_out_of_the_project_is_refused(tmp_path: Path, link: str) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    outside.mkdir()
    (project / link).parent.mkdir(parents=True)
    (project / link).symlink_to(outside if link == ".claude" else outside / "settings.json")
    with pytest.raises(SettingsUnusable, match="symbolic link"):
        installed(project, PROTOCOL)
    assert list(outside.iterdir()) == []


def test_a_file_that_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = settings_file(tmp_path, "{}")
    change = installed(tmp_path, PROTOCOL)
    path.write_text('{"theirs": true}')
    with pytest.raises(Conflict):
        change.write()
    assert path.read_text() == '{"theirs": true}'
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_the_file_keeps_its_mode(tmp_path: Path) -> None:
    path = settings_file(tmp_path, "{}")
    path.chmod(0o600)
    installed(tmp_path, PROTOCOL).write()
    assert path.stat().st_mode & 0o777 == 0o600


GROUPS = st.lists(
    st.fixed_dictionaries(
        {"hooks": st.lists(st.fixed_dictionaries({"type": st.just("command"), "command": st.text()}), max_size=2)},
        optional={"matcher": st.sampled_from(["", "*", "Bash", "Read|Bash|mcp__.*"])},
    )
    | st.integers(),
    max_size=3,
)


@given(section=st.dictionaries(st.sampled_from(["Stop", "PreToolUse", "PostToolUse", "Other"]), GROUPS))
def test_installing_and_removing_leaves_any_settings_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, section: dict[str, Any]
) -> None:
    project = tmp_path_factory.mktemp("project")
    path = settings_file(project, json.dumps({"hooks": section}, indent=2))
    installed(project, PROTOCOL).write()
    assert not installed(project, PROTOCOL).needed
    removed(project).write()
    left = json.loads(path.read_text()).get("hooks", {})
    assert {event: groups for event, groups in left.items() if groups} == {
        event: groups for event, groups in section.items() if groups
    }


def run_command(command: str, user: Path) -> subprocess.CompletedProcess[str]:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(user)}
    return subprocess.run(["/bin/sh", "-c", command], input="{}", env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("name", ["home", 'it\'s a "home"'])
def test_the_command_runs_the_hook_client_on_its_data_directory(tmp_path: Path, name: str) -> None:
    home = tmp_path / name
    refresh(home)
    done = run_command(command("Stop", home=str(home)), tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "no daemon is running" in done.stderr
    (home / "stopped").touch()
    done = run_command(command("SessionStart", home=str(home)), tmp_path)
    assert "holdfast stop" in done.stderr


def test_the_command_is_silent_where_holdfast_is_gone(tmp_path: Path) -> None:
    done = run_command(command("Stop", home=str(tmp_path / "gone")), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_file_of_this_machine_stays_out_of_git(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    linked = repository.worktree(tmp_path / "linked", "other")
    assert git_place.keep_out_of_git(linked, LOCAL)
    assert not git_place.keep_out_of_git(repository.path, LOCAL)
    for project in (repository.path, linked):
        installed(project, PROTOCOL).write()
    assert repository.git("status", "--porcelain") == ""
    assert repository.git("-C", str(linked), "status", "--porcelain") == ""
