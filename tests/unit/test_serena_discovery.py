"""Where Serena is looked for: the user's configuration first, the project's own only when it is trusted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.protocol.serena.discovery import Found, Launch, find_serena


class Place:
    """A user's home and a worktree."""

    def __init__(self, folder: Path) -> None:
        self.home, self.worktree, self.programs = folder / "home", folder / "work", folder / "bin"
        for made in (self.home, self.worktree / ".serena", self.programs):
            made.mkdir(parents=True)
        self.env = {"HOME": str(self.home), "PATH": str(self.programs)}

    def user(self, content: Any, folder: Path | None = None) -> None:
        text = content if isinstance(content, str) else json.dumps(content)
        ((folder or self.home) / ".claude.json").write_text(text)

    def project(self, content: Any) -> None:
        (self.worktree / ".mcp.json").write_text(content if isinstance(content, str) else json.dumps(content))

    def install(self) -> str:
        program = self.programs / "serena"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        return str(program)

    def found(self, *, trusted: bool) -> Found:
        return find_serena(self.worktree, trusted, self.env)

    def launch(self, *, trusted: bool = False) -> Launch:
        found = self.found(trusted=trusted)
        assert found.launch is not None, found.detail
        return found.launch


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def servers(**named: Any) -> dict[str, Any]:
    return {"mcpServers": named}


def test_the_users_own_entry_counts_without_trust_and_its_options_are_replaced(place: Place) -> None:
    args = ["--from", "serena-agent", "serena", "start-mcp-server", "--context", "x", "--project", "/elsewhere"]
    place.user(servers(serena={"command": "uvx", "args": args, "env": {"A": "1"}}))
    expected = ("uvx", "--from", "serena-agent", "serena", "start-mcp-server")
    assert place.launch() == Launch(expected, (("A", "1"),), takes_options=True)


def test_the_users_entry_for_this_project_comes_before_the_general_one(place: Place) -> None:
    local = {str(place.worktree): servers(serena={"command": "serena-mcp-server"})}
    place.user(servers(serena={"command": "general"}) | {"projects": local})
    assert place.launch().argv == ("serena-mcp-server",)


def test_the_users_configuration_is_found_where_claude_code_was_told_to_keep_it(place: Place) -> None:
    elsewhere = place.home / "elsewhere"
    elsewhere.mkdir()
    place.env["CLAUDE_CONFIG_DIR"] = str(elsewhere)
    place.user(servers(serena={"command": "there"}), elsewhere)
    assert place.launch().argv == ("there",)


def test_a_wrapper_is_started_as_it_is(place: Place) -> None:
    place.user(servers(serena={"command": "my-wrapper", "args": ["-x"]}))
    assert place.launch() == Launch(("my-wrapper", "-x"))


def test_the_server_called_serena_comes_before_one_that_only_sounds_like_it(place: Place) -> None:
    place.user(servers(**{"a-serena": {"command": "other"}, "Serena": {"command": "it"}}))
    assert place.launch().argv == ("it",)


def test_variables_in_an_entry_are_expand_variables(place: Place) -> None:
    place.env |= {"TOKEN": "t"}
    entry = {"type": "http", "url": "${URL:-http://127.0.0.1:9}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
    place.user(servers(serena=entry))
    launch = place.launch()
    assert launch == Launch(url="http://127.0.0.1:9/mcp", headers=(("Authorization", "Bearer t"),))
    assert "Bearer" not in repr(launch)


@pytest.mark.parametrize("within", [".", "below"])
def test_the_variable_names_the_project_and_what_is_in_it(place: Place, within: str) -> None:
    program = place.install()
    (place.worktree / "below").mkdir()
    place.env["SERENA_PROJECT"] = str(place.worktree)
    launch = find_serena(place.worktree / within, False, place.env).launch
    assert launch == Launch((program, "start-mcp-server"), takes_options=True)


def test_the_variable_says_nothing_of_other_projects(place: Place) -> None:
    place.install()
    place.env["SERENA_PROJECT"] = str(place.home)
    assert place.found(trusted=False).launch is None


def test_what_the_project_brings_counts_only_when_it_is_trusted(place: Place) -> None:
    place.project(servers(serena={"command": "theirs"}))
    untrusted = place.found(trusted=False)
    assert untrusted.launch is None
    assert "holdfast trust" in untrusted.detail
    assert place.launch(trusted=True).argv == ("theirs",)


def test_serenas_own_settings_in_a_project_count_where_serena_is_installed(place: Place) -> None:
    (place.worktree / ".serena" / "project.yml").write_text("project_name: x\n")
    assert place.found(trusted=True) == Found(None, "No Serena is configured.")
    program = place.install()
    for trusted in (True, False):  # it is the user's own program, and the project is not opened
        assert place.launch(trusted=trusted).argv == (program, "start-mcp-server")


def test_settings_that_lie_outside_do_not_count(place: Place) -> None:
    place.install()
    outside = place.home / "project.yml"
    outside.write_text("project_name: x\n")
    (place.worktree / ".serena" / "project.yml").symlink_to(outside)
    found = place.found(trusted=True)
    assert found.launch is None
    assert "leads out of the worktree" in found.detail


@pytest.mark.parametrize(
    "content", ["{", "[]", "null", '{"mcpServers": []}', '{"mcpServers": {"serena": 1}}', "[" * 9999]
)
def test_a_configuration_of_another_shape_is_no_serena(place: Place, content: str) -> None:
    place.user(content)
    place.project(content)
    assert place.found(trusted=True).launch is None


def test_a_configuration_that_cannot_be_read_is_named(place: Place) -> None:
    place.user("{")
    assert ".claude.json cannot be read" in place.found(trusted=False).detail
