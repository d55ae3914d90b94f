"""What else speaks to an agent at the start of a session is named with its cost, and nothing of it is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.agents.registry import settings_of
from holdfast.agents.settings import Neighbour, NeighbourKind
from holdfast.briefing.model import tokens
from holdfast.config import Settings
from holdfast.doctor.findings import Mark
from holdfast.doctor.neighbours import check_neighbours
from holdfast.doctor.surroundings import Surroundings
from holdfast.setup.hook_command import command


class Place:
    """A user's configuration and a project."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.config = root / "me" / ".claude"
        self.project = root / "me" / "src" / "fence"
        self.env = {"HOME": str(root / "me"), "PATH": ""}
        self.config.mkdir(parents=True)
        self.project.mkdir(parents=True)

    def write(self, name: str, content: str | dict[str, Any]) -> Path:
        path = self.root / "me" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def found(self) -> list[Neighbour]:
        return list(settings_of().neighbours(self.env, self.project) or ())

    def surroundings(self) -> Surroundings:
        return Surroundings(Settings(home=self.root / "data"), self.env, self.project, lambda name, args: {})

    def names(self, kind: NeighbourKind) -> list[str]:
        return [one.name for one in self.found() if one.kind is kind]


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return Place(tmp_path)


def hooks(event: str, *commands: str) -> dict[str, Any]:
    return {"hooks": {event: [{"hooks": [{"type": "command", "command": one} for one in commands]}]}}


def test_the_agents_own_memory_is_measured(here: Place) -> None:
    assert here.found() == []
    key = "".join(char if char.isalnum() else "-" for char in str(here.project))
    files = [
        here.write(".claude/CLAUDE.md", "Be brief.\n" * 20),
        here.write(".claude/rules/style.md", "Tabs.\n"),
        here.write("src/fence/CLAUDE.md", "Posts first.\n" * 10),
        here.write("src/fence/CLAUDE.local.md", "My own.\n"),
        here.write("src/CLAUDE.md", "All of it.\n"),
        here.write("src/fence/.claude/rules/deep/posts.md", "Oak.\n"),
        here.write(f".claude/projects/{key}/memory/MEMORY.md", "- [posts](posts.md)\n"),
    ]
    here.write("src/fence/below/CLAUDE.md", "Only read there.")
    (one,) = here.found()
    assert one.kind is NeighbourKind.MEMORY and set(one.files) == set(files)
    surroundings = here.surroundings()
    (finding,) = check_neighbours(surroundings)
    cost = sum(tokens(path.read_text()) for path in files)
    assert finding.mark is Mark.OK and f"about {cost:,} tokens" in finding.text and str(files[0]) in finding.text


def test_other_hooks_at_the_start_are_named_in_every_settings_file_and_plugin(here: Place) -> None:
    secret = "TOKEN=s3cret /opt/bin/remember --key s3cret"  # noqa: S105 - what must not be shown
    here.write(
        ".claude/settings.json", {**hooks("SessionStart", secret, command("SessionStart")), "enabledPlugins": {}}
    )
    here.write("src/fence/.claude/settings.json", hooks("UserPromptSubmit", "npx claude-mem context"))
    here.write("src/fence/.claude/settings.local.json", hooks("PreToolUse", "their-check"))
    found = [one for one in here.found() if one.kind is NeighbourKind.HOOK]
    assert [one.name for one in found] == [
        "the SessionStart hook `remember`",
        "the UserPromptSubmit hook `npx` `claude-mem`",
    ]
    assert found[1].where.endswith("fence/.claude/settings.json")
    told = [finding.text + str(finding.repair) for finding in check_neighbours(here.surroundings())]
    assert all("unknown" in one and "HOLDFAST_BRIEFING=offer" in one and "s3cret" not in one for one in told) and told


def test_plugins_and_servers_that_are_memories_are_named_and_ours_are_not(here: Place) -> None:
    enabled = {
        "claude-mem@thedotmack": True,
        "lint@x": True,
        "starts@x": True,
        "off-memory@x": False,
        "holdfast@holdfast": True,
    }
    here.write(".claude/settings.json", {"enabledPlugins": enabled})
    place = here.write("plugins/starts/hooks/hooks.json", hooks("SessionStart", "touch ran")).parents[1]
    installed = {"version": 2, "plugins": {"starts@x": [{"scope": "user", "installPath": str(place)}]}}
    here.write(".claude/plugins/installed_plugins.json", installed)
    assert here.names(NeighbourKind.PLUGIN) == [
        "the plugin `claude-mem@thedotmack`",
        "the plugin `starts@x`, with SessionStart hooks",
    ]
    own = {"command": "holdfast", "args": ["mcp"]}
    here.write(".claude.json", {"mcpServers": {"basic-memory": {"command": "uvx"}, "memory": own, "shop": {}}})
    here.write("src/fence/.mcp.json", {"mcpServers": {"mem0": {"command": "npx"}}})
    assert here.names(NeighbourKind.SERVER) == ["the MCP server `basic-memory`", "the MCP server `mem0`"]
    assert not (here.project / "ran").exists()


@pytest.mark.parametrize("content", ["{", "[]", '{"hooks": 3}', '{"hooks": {"SessionStart": [3, {"hooks": [7, {}]}]}}'])
def test_settings_in_no_form_that_is_known_name_nothing(here: Place, content: str) -> None:
    here.write(".claude/settings.json", content)
    here.write(".claude/plugins/installed_plugins.json", content)
    here.write("src/fence/.mcp.json", content)
    assert here.found() == []
