"""What every agent's settings part promises, tried on each agent that has the part."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.agents.echo.agent import ECHO
from tests.repository import Repository

from holdfast.agents import Agent
from holdfast.agents.registry import AGENTS
from holdfast.agents.settings import Allow, Scope, SettingsPart, SetupRequest
from holdfast.errors import HoldfastError
from holdfast.setup.hook_command import HookCommand, command, portable_command
from holdfast.setup.steps import Step, apply

PURPOSES = ("conversation", "protocol", "bridge", "briefing")
KNOWN = [agent for agent in (*AGENTS.values(), ECHO) if agent.settings is not None]
SCOPES = [
    pytest.param(agent, scope, id=f"{agent.name}-{scope}")
    for agent in KNOWN
    if agent.settings is not None
    for scope in agent.settings().scopes
]


class World:
    """One user with one project."""

    def __init__(self, root: Path, agent: Agent) -> None:
        assert agent.settings is not None
        self.root = root
        self.part: SettingsPart = agent.settings()
        self.project = Repository(root / "project").path
        self.env = {"HOME": str(root), "PATH": os.defpath}

    def request(self, scope: Scope, other_home: str | None = None) -> SetupRequest:
        return SetupRequest(scope, self.project, self.root / ".holdfast", other_home, self.env)

    def install(self, scope: Scope, other_home: str | None = None) -> list[Step]:
        return self.part.setup(self.request(scope, other_home)).install(None)

    def files(self) -> dict[str, bytes]:
        """Every file but git's and Holdfast's own."""
        found = (path for path in self.root.rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in found if not {".git", ".holdfast"} & set(path.parts)}


@pytest.fixture
def world(tmp_path: Path, agent: Agent) -> World:
    return World(tmp_path, agent)


@pytest.mark.parametrize(("agent", "scope"), SCOPES)
def test_setting_up_is_idempotent_shown_before_and_undone_to_the_byte(world: World, scope: Scope) -> None:
    before = world.files()
    steps = world.install(scope)
    assert any(step.needed for step in steps)
    assert all(step.shown() for step in steps if step.needed)
    assert world.files() == before, "nothing is changed before it is applied"
    apply(steps)
    once = world.files()
    assert once != before
    assert not any(step.needed for step in world.install(scope))
    apply(world.part.setup(world.request(scope)).remove())
    assert world.files() == before
    assert not any(step.needed for step in world.part.setup(world.request(scope)).remove())


@pytest.mark.parametrize(("agent", "scope"), SCOPES)
def test_what_was_set_up_is_found_again(world: World, scope: Scope) -> None:
    assert list(world.part.servers(world.env, world.project)) == []
    apply(world.install(scope, "/elsewhere"))
    (found,) = world.part.servers(world.env, world.project)
    shared = scope is Scope.PROJECT
    assert found.own is not shared
    assert found.is_of(Path("/elsewhere"))
    assert found.is_of(Path("/nowhere")) is shared, "a shared file names no data directory"
    assert found.command[-1].endswith("mcp") or "holdfast mcp" in found.command[-1]


@pytest.mark.parametrize(("agent", "scope"), SCOPES)
def test_a_shared_file_names_nothing_of_this_machine(world: World, scope: Scope) -> None:
    if scope is Scope.PROJECT:
        apply(world.install(scope, "/elsewhere"))
        text = b"".join(world.files().values()).decode()
        assert "/elsewhere" not in text
        assert str(Path.home()) not in text
        assert all(str(world.project) in name for name in world.files()), "only the project's files"


@pytest.mark.parametrize(("agent", "scope"), SCOPES)
def test_a_file_that_cannot_be_read_is_refused_and_left_alone(world: World, scope: Scope) -> None:
    steps = world.install(scope)
    apply(steps)
    names = list(world.files())
    apply(world.part.setup(world.request(scope)).remove())
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("{ holdfast is not JSON, nor [TOML")
    before = world.files()
    with pytest.raises(HoldfastError):
        apply(world.install(scope))
    assert world.files() == before


@pytest.mark.parametrize("agent", KNOWN, ids=lambda agent: agent.name)
def test_rules_are_offered_only_where_there_are_any(world: World) -> None:
    setup = world.part.setup(world.request(Scope.USER))
    assert not setup.has_rules()
    if world.part.offers_rules:
        apply(setup.install(Allow.CORE))
        assert world.part.setup(world.request(Scope.USER)).has_rules()


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize("agent", KNOWN, ids=lambda agent: agent.name)
def test_hooks_of_a_purpose_are_put_in_found_and_taken_out(world: World, agent: Agent, purpose: str) -> None:
    part = world.part
    assert not part.hooks_installed(world.project, purpose)
    change = part.install_hooks(world.project, purpose, home="/elsewhere")
    assert (change is None) is (agent.hooks is None), "whoever reads hooks can install them"
    if change is None:
        assert part.remove_hooks(world.project, purpose) is None
        assert part.hook_files(world.env, world.project) == []
        return
    assert part.local_file is not None
    assert change.path == world.project / part.local_file
    change.write()
    assert part.hooks_installed(world.project, purpose)
    files = part.hook_files(world.env, world.project)
    assert change.path in [file.path for file in files]
    found = [HookCommand(event, text) for event, text in part.hook_commands(change.path)]
    assert found
    for one in found:
        assert one.is_current
        assert one.is_safe(world.project, Path("/elsewhere"))
        assert one.parts is not None and one.parts.home == "/elsewhere"
    removed = part.remove_hooks(world.project, purpose)
    assert removed is not None
    removed.write()
    assert not part.hooks_installed(world.project, purpose)
    assert part.hook_commands(change.path) == []


@pytest.mark.parametrize("agent", [one for one in KNOWN if one.hooks is not None], ids=lambda agent: agent.name)
def test_hooks_are_rewritten_and_none_is_added(world: World) -> None:
    part = world.part
    change = part.install_hooks(world.project, "bridge")
    assert change is not None
    change.write()
    events = [event for event, _ in part.hook_commands(change.path)]
    part.rewrite_hooks(change.path, portable_command).write()
    assert part.hook_commands(change.path) == [(event, portable_command(event)) for event in events]
    part.rewrite_hooks(change.path, lambda event: command(event, home="/x")).write()
    assert part.hook_commands(change.path) == [(event, command(event, home="/x")) for event in events]


@pytest.mark.parametrize("agent", [one for one in KNOWN if one.hooks is not None], ids=lambda agent: agent.name)
def test_hooks_of_others_stay(world: World) -> None:
    part = world.part
    change = part.install_hooks(world.project, "bridge")
    assert change is not None
    change.write()
    theirs = {**json.loads(change.path.read_text()), "theirs": [1, 2]}
    change.path.write_text(json.dumps(theirs))
    removed = part.remove_hooks(world.project, "bridge")
    assert removed is not None
    removed.write()
    assert json.loads(change.path.read_text()) == {"theirs": [1, 2]}


@pytest.mark.parametrize("agent", KNOWN, ids=lambda agent: agent.name)
def test_what_is_asked_of_an_empty_home_has_an_answer(world: World) -> None:
    part = world.part
    assert str(part.config_directory(world.env)).startswith(str(world.root))
    assert part.plugin(world.env, world.project) is None
    for name, value in part.hook_environment(world.project).items():
        assert name and value
