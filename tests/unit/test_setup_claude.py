"""`holdfast setup claude` without Claude Code's own command: what is put into its files, and what is given back."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.repository import Repository

from holdfast.agents.claude import settings as claude_settings
from holdfast.agents.claude.setup import ClaudeSetup
from holdfast.agents.settings import Allow, Scope
from holdfast.errors import Conflict, HoldfastError
from holdfast.setup import steps
from holdfast.setup.json_file import SettingsUnusable

ORIGINALS = {
    "no file": None,
    "an empty file": "",
    "an empty object": "{}",
    "on one line": '{"theme":"dark","permissions":{"allow":["Bash(ls)"]}}',
    "no newline at the end": '{\n  "theme": "dark"\n}',
    "tabs": '{\n\t"theme": "dark",\n\t"hooks": {}\n}\n',
    "carriage returns": '{\r\n    "theme": "dark",\r\n    "mcpServers": {}\r\n}\r\n',
    "in its own way": '{ "hooks" : { "Stop": [ ] ,\n"SessionStart": [{"hooks": [{"command":"x"}]}]}, "n": 1e5 }',
    "half a pair": '{"odd": "\\ud800"}',
}


class World:
    """A user, a project, and one way to set Claude Code up."""

    def __init__(self, root: Path, scope: Scope) -> None:
        self.root = root
        self.project = root / "project"
        self.project.mkdir()
        self.env = {"HOME": str(root), "PATH": str(root / "nothing")}
        self.setup = ClaudeSetup(scope, self.project, root / ".holdfast", None, self.env)
        self.settings = {
            Scope.USER: root / ".claude" / "settings.json",
            Scope.PROJECT: self.project / ".claude" / "settings.json",
            Scope.LOCAL: self.project / ".claude" / "settings.local.json",
        }[scope]
        self.servers = self.project / ".mcp.json" if scope is Scope.PROJECT else root / ".claude.json"

    def install(self, allow: Allow | None = None) -> None:
        steps.apply(self.setup.install(allow))

    def remove(self) -> None:
        steps.apply(self.setup.remove())

    def files(self) -> dict[str, bytes]:
        """Every file there is, but what Holdfast keeps for itself."""
        found = (path for path in self.root.rglob("*") if path.is_file() and ".holdfast" not in path.parts)
        return {str(path.relative_to(self.root)): path.read_bytes() for path in found}

    def write(self, path: Path, text: str | None) -> None:
        if text is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())

    def server(self) -> dict[str, Any]:
        content = json.loads(self.servers.read_text())
        if self.setup.scope is Scope.LOCAL:
            content = content["projects"][str(self.project)]
        return dict(content["mcpServers"]["holdfast"])


@pytest.fixture(params=list(Scope))
def world(tmp_path: Path, request: pytest.FixtureRequest) -> World:
    return World(tmp_path, request.param)


@pytest.fixture
def user(tmp_path: Path) -> World:
    return World(tmp_path, Scope.USER)


@pytest.fixture
def local(tmp_path: Path) -> World:
    return World(tmp_path, Scope.LOCAL)


@pytest.mark.parametrize("text", ORIGINALS.values(), ids=ORIGINALS)
def test_three_times_gives_the_same_files_as_once(world: World, text: str | None) -> None:
    world.write(world.settings, text)
    world.write(world.servers, text)
    world.install(Allow.CORE)
    once = world.files()
    for _ in range(2):
        assert not any(step.needed for step in world.setup.install(Allow.CORE))
        world.install()
    assert world.files() == once


@pytest.mark.parametrize("text", ORIGINALS.values(), ids=ORIGINALS)
def test_removing_gives_back_files_that_nobody_edited_to_the_byte(world: World, text: str | None) -> None:
    world.write(world.settings, text)
    world.write(world.servers, text)
    before = world.files()
    folders = {path for path in world.root.rglob("*") if path.is_dir()}
    world.install(Allow.CORE)
    world.install(Allow.ALL)
    assert world.files() != before
    world.remove()
    assert world.files() == before
    left = {path for path in world.root.rglob("*") if path.is_dir()}
    assert {path for path in left - folders if ".holdfast" not in path.parts} == set()


@pytest.mark.parametrize("text", ORIGINALS.values(), ids=ORIGINALS)
def test_removing_keeps_what_others_changed_meanwhile(world: World, text: str | None) -> None:
    world.write(world.settings, text)
    world.write(world.servers, text)
    world.install(Allow.CORE)
    for path in (world.settings, world.servers):
        content = json.loads(path.read_text())
        content["theirs"] = {"since": "then"}
        content.setdefault("hooks", {}).setdefault("Stop", []).append({"hooks": [{"type": "command", "command": "y"}]})
        content.setdefault("mcpServers", {})["other"] = {"command": "other"}
        path.write_text(json.dumps(content))
    world.remove()
    original = json.loads(text) if text and text.strip() else {}
    for path in (world.settings, world.servers):
        left = json.loads(path.read_text())
        assert left["theirs"] == {"since": "then"}
        assert left["mcpServers"] == {"other": {"command": "other"}}
        assert left["hooks"]["Stop"][-1]["hooks"][0]["command"] == "y"
        assert left.get("theme") == original.get("theme") and left.get("permissions") == original.get("permissions")
        assert "relay/hook.py" not in path.read_text() and "holdfast hook" not in path.read_text()


@pytest.mark.parametrize("text", ORIGINALS.values(), ids=ORIGINALS)
def test_removing_where_nothing_of_ours_is_changes_nothing(world: World, text: str | None) -> None:
    world.write(world.settings, text)
    world.write(world.servers, text)
    assert not any(step.needed for step in world.setup.remove())


def test_a_file_of_ours_that_only_lost_our_entries_is_deleted(user: World) -> None:
    user.install()
    user.settings.write_text(json.dumps(json.loads(user.settings.read_text())))  # somebody's editor, another form
    user.remove()
    assert not user.settings.exists()


@pytest.mark.parametrize("which", ["settings", "servers"])
@pytest.mark.parametrize("text", ['{"hooks": ', "// note\n{}", "[]", '{"a": 1, "a": 2}'])
def test_malformed_settings_are_refused_and_nothing_is_written(world: World, which: str, text: str) -> None:
    world.write(getattr(world, which), text)
    before = world.files()
    with pytest.raises(SettingsUnusable, match=r"not changed"):
        world.install(Allow.CORE)
    with pytest.raises(SettingsUnusable, match=r"not changed"):
        world.remove()
    assert world.files() == before


@pytest.mark.parametrize(
    "text", ['{"hooks": []}', '{"permissions": []}', '{"permissions": {"allow": "all"}}', '{"hooks": {"Stop": {}}}']
)
def test_settings_of_another_shape_are_refused_and_nothing_is_written(world: World, text: str) -> None:
    world.write(world.settings, text)
    before = world.files()
    with pytest.raises(SettingsUnusable):
        world.install(Allow.CORE)
    assert world.files() == before


def test_servers_of_another_shape_are_refused_and_nothing_is_written(world: World) -> None:
    world.write(world.servers, '{"mcpServers": [], "projects": []}')
    before = world.files()
    with pytest.raises(SettingsUnusable, match="must be an object"):
        world.install()
    assert world.files() == before


def test_no_tool_call_starts_a_process(world: World) -> None:
    world.install()
    assert list(json.loads(world.settings.read_text())["hooks"]) == ["SessionStart", "PreCompact", "SessionEnd"]


def test_nothing_but_settings_and_servers_is_touched(world: World) -> None:
    world.write(world.project / "CLAUDE.md", "# Ours\n")
    world.write(world.root / ".claude" / "CLAUDE.md", "# Mine\n")
    world.write(world.project / "AGENTS.md", "# Agents\n")
    before = world.files()
    world.install(Allow.ALL)
    after = world.files()
    ours = {str(path.relative_to(world.root)) for path in (world.settings, world.servers)}
    assert {name for name, content in after.items() if before.get(name) != content} == ours


def test_a_shared_file_names_nothing_of_this_machine(tmp_path: Path) -> None:
    world = World(tmp_path, Scope.PROJECT)
    world.install(Allow.CORE)
    written = world.settings.read_text() + world.servers.read_text()
    assert sys.executable not in written and str(tmp_path) not in written and "${" not in world.servers.read_text()


def test_another_data_directory_is_told_to_server_and_hooks(local: World) -> None:
    local.setup = replace(local.setup, home=local.root / "data", other_home=str(local.root / "data"))
    local.install()
    assert local.server()["env"] == {"HOLDFAST_HOME": str(local.root / "data")}
    assert f"HOLDFAST_HOME={local.root / 'data'}" in local.settings.read_text()
    local.setup = replace(local.setup, other_home=None)
    local.install()
    assert "env" not in local.server()


def test_the_server_is_started_by_the_launcher_of_the_data_directory(user: World) -> None:
    user.install()
    *launch, launcher, word = user.server()["args"]
    assert user.server()["command"] == "sh" and launch == ["-c", '[ -O "$0" ] && . "$0"'] and word == "mcp"
    assert Path(launcher) == Path.home() / ".holdfast" / "launcher.sh"
    assert (user.setup.home / "launcher.sh").is_file()


def test_a_registration_made_by_hand_is_brought_up_to_date_and_keeps_its_variables(user: World) -> None:
    by_hand = {"type": "stdio", "command": "holdfast", "args": ["mcp"], "env": {"HOLDFAST_TOOLSETS": "all"}}
    user.write(user.servers, json.dumps({"mcpServers": {"holdfast": by_hand}}))
    user.install()
    assert user.server()["command"] == "sh"
    assert user.server()["env"] == {"HOLDFAST_TOOLSETS": "all"}
    user.remove()
    assert "holdfast" not in user.servers.read_text()


def test_a_server_that_only_has_our_name_is_left_alone(user: World) -> None:
    user.write(user.servers, json.dumps({"mcpServers": {"holdfast": {"type": "http", "url": "http://example.com"}}}))
    before = user.files()
    with pytest.raises(Conflict, match="Rename or remove it"):
        user.install()
    user.remove()
    assert user.files() == before


def test_local_servers_stand_under_the_repository_that_worktrees_share(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    linked = repository.worktree(tmp_path / "linked", "other")
    (linked / "deep").mkdir()
    world = World(tmp_path, Scope.LOCAL)
    steps.apply(replace(world.setup, project=linked / "deep").install(None))
    assert list(json.loads(world.servers.read_text())["projects"]) == [str(repository.path)]


def test_a_chosen_configuration_directory_is_honoured(user: World) -> None:
    user.setup = replace(user.setup, env={**user.env, "CLAUDE_CONFIG_DIR": str(user.root / "elsewhere")})
    user.install()
    assert set(user.files()) == {"elsewhere/settings.json", "elsewhere/.claude.json"}


def test_a_users_settings_may_be_a_link(user: World) -> None:
    kept = user.root / "dotfiles" / "settings.json"
    user.write(kept, "{}\n")
    user.settings.parent.mkdir()
    user.settings.symlink_to(kept)
    user.install()
    assert user.settings.is_symlink() and "SessionStart" in kept.read_text()
    user.remove()
    assert user.settings.is_symlink() and kept.read_text() == "{}\n"


def test_a_projects_settings_may_not_lead_out_of_it(tmp_path: Path) -> None:
    world = World(tmp_path, Scope.PROJECT)
    world.settings.parent.mkdir()
    world.settings.symlink_to(tmp_path / "outside.json")
    with pytest.raises(SettingsUnusable, match="symbolic link"):
        world.install()


@pytest.mark.parametrize("purpose", ["protocol", "bridge"])
def test_removing_leaves_the_hooks_of_another_purpose(local: World, purpose: str) -> None:
    hooks = claude_settings.PURPOSES[purpose]
    local.install()
    claude_settings.installed(local.project, hooks).write()
    local.remove()
    assert claude_settings.hooks_in(local.settings) == set(hooks)


@pytest.mark.parametrize("purpose", ["protocol", "bridge"])
def test_another_purpose_leaves_the_hooks_of_setup(local: World, purpose: str) -> None:
    local.install()
    claude_settings.installed(local.project, claude_settings.PURPOSES[purpose]).write()
    claude_settings.removed(local.project, claude_settings.PURPOSES[purpose]).write()
    assert claude_settings.hooks_in(local.settings) == set(claude_settings.BRIEFING)
    assert not any(step.needed for step in local.setup.install(None))


@pytest.mark.parametrize("purpose", ["protocol", "bridge"])
def test_hooks_that_were_there_before_are_given_back_to_the_byte(local: World, purpose: str) -> None:
    claude_settings.installed(local.project, claude_settings.PURPOSES[purpose]).write()
    before = local.files()
    local.install()
    local.remove()
    assert local.files() == before


def rules(world: World) -> list[str]:
    return list(json.loads(world.settings.read_text()).get("permissions", {}).get("allow", []))


def test_a_choice_of_rules_replaces_ours_and_no_others(user: World) -> None:
    theirs = ["Bash(ls)", "mcp__holdfast__teams_ask"]
    user.write(user.settings, json.dumps({"permissions": {"allow": theirs, "deny": ["Bash(rm)"]}}))
    user.install()
    assert rules(user) == theirs
    user.install(Allow.CORE)
    core = ("thought", "init", "session", "resume", "save_task")
    assert rules(user) == [*theirs, *(f"mcp__holdfast__{name}" for name in core)]
    user.install()
    assert len(rules(user)) == 7
    user.install(Allow.ALL)
    assert rules(user) == [*theirs, "mcp__holdfast"]
    assert user.setup.has_rules()
    user.install(Allow.NONE)
    assert rules(user) == theirs
    assert not user.setup.has_rules()


def enable(path: Path, name: str, is_on: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"enabledPlugins": {name: is_on}}))


def test_setup_refuses_while_the_plugin_is_enabled_and_says_how_to_choose(world: World) -> None:
    enable(world.root / ".claude" / "settings.json", "holdfast@holdfast", is_on=True)
    before = world.files()
    with pytest.raises(Conflict, match="claude plugin disable holdfast@holdfast"):
        world.install()
    assert world.files() == before
    world.remove()


@pytest.mark.parametrize("name", ["holdfast@holdfast", "other@holdfast"])
def test_a_disabled_plugin_and_other_plugins_are_no_hindrance(world: World, name: str) -> None:
    enable(world.root / ".claude" / "settings.json", name, is_on=name.startswith("other"))
    world.install()
    assert "SessionStart" in world.settings.read_text()


def test_what_was_done_is_undone_when_a_later_step_fails(world: World) -> None:
    world.write(world.servers, '{"theirs": 1}')
    before = world.files()
    planned = world.setup.install(None)
    world.write(world.settings, '{"came": "meanwhile"}')
    with pytest.raises(Conflict, match="meanwhile"):
        steps.apply(planned)
    world.settings.unlink()
    assert world.files() == before
    world.install()
    world.remove()
    assert world.files() == before


def test_a_failure_that_cannot_be_undone_is_told(user: World) -> None:
    planned = user.setup.install(None)
    user.write(user.settings, '{"came": "meanwhile"}')

    class Meddling:
        """Somebody who changes the first file as soon as it is written."""

        needed = True

        def shown(self) -> str:
            return ""

        def apply(self) -> None:
            user.servers.write_text("{}")

        def undo(self) -> None:
            pass

    with pytest.raises(HoldfastError, match=r"was changed meanwhile.*These earlier changes could not be undone"):
        steps.apply([*planned[:-1], Meddling(), planned[-1]])


def test_originals_are_nobody_elses_to_read(user: World) -> None:
    user.write(user.settings, '{"env": {"TOKEN": "secret"}}')
    user.install()
    kept = list((user.root / ".holdfast").rglob("*"))
    assert kept and all(path.stat().st_mode & 0o077 == 0 for path in kept)
