"""A `claude` command that misbehaves: whatever it does, setup leaves nothing half done."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.agents.claude import cli as claude_cli
from holdfast.agents.claude.setup import ClaudeSetup
from holdfast.agents.settings import Scope
from holdfast.errors import HoldfastError
from holdfast.setup import steps

CONFIG = '{"theirs": 1}'


@pytest.fixture
def setup(tmp_path: Path) -> ClaudeSetup:
    (tmp_path / ".claude.json").write_text(CONFIG)
    return ClaudeSetup(Scope.USER, tmp_path, tmp_path / ".holdfast", None, {"HOME": str(tmp_path), "PATH": "/nowhere"})


def given_claude(tmp_path: Path, script: str) -> None:
    program = tmp_path / ".local" / "bin" / "claude"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo it is broken >&2; exit 1", r"`claude mcp add-json -s user` failed: it is broken"),
        ("exit 0", "did not change"),
        ("echo '{}' > .claude.json; exit 1", "exit status 1"),
        ("echo '{' > .claude.json", "line 2"),
        ("rm .claude.json; exit 1", "exit status 1"),
        ("sleep 60", "no answer within"),
    ],
)
def test_a_registration_that_fails_leaves_every_file_as_it_was(
    setup: ClaudeSetup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, says: str
) -> None:
    monkeypatch.setattr(claude_cli, "LIMIT_S", 20.0 if script != "sleep 60" else 0.5)
    given_claude(tmp_path, script)
    with pytest.raises(HoldfastError, match=says):
        steps.apply(setup.install(None))
    assert (tmp_path / ".claude.json").read_text() == CONFIG
    assert not (tmp_path / ".claude").exists()


def test_a_registration_is_taken_back_when_the_settings_cannot_be_written(setup: ClaudeSetup, tmp_path: Path) -> None:
    server = '{"mcpServers": {"holdfast": \'"$6"\'}}'
    given_claude(tmp_path, f"printf '%s' '{server}' > .claude.json")
    planned = setup.install(None)
    assert "$ claude mcp add-json -s user holdfast" in planned[1].shown()
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text('{"came": "meanwhile"}')
    with pytest.raises(HoldfastError, match="changed meanwhile"):
        steps.apply(planned)
    assert (tmp_path / ".claude.json").read_text() == CONFIG


def test_a_registration_is_given_back_to_the_byte(setup: ClaudeSetup, tmp_path: Path) -> None:
    server = '{"mcpServers": {"holdfast": \'"$6"\'}}'
    given_claude(tmp_path, f"printf '%s' '{server}' > .claude.json")
    steps.apply(setup.install(None))
    assert not any(step.needed for step in setup.install(None))
    steps.apply(setup.remove())
    assert (tmp_path / ".claude.json").read_text() == CONFIG
