"""A repository that nobody trusts cannot keep the daemon from its other projects."""

from __future__ import annotations

import os
from pathlib import Path

from tests.process.agent import Agent
from tests.process.hooks import left_behind, starts
from tests.repository import Repository
from tests.shared_daemon import Guest


def test_a_hostile_repository_does_not_keep_other_projects_waiting(shared_embedded: Guest, tmp_path: Path) -> None:
    """Each of its files took minutes; a hook gives up after five seconds, and a call of an agent in sixty."""
    hostile = Repository(tmp_path / "hostile")
    hostile.write(".serena/memories/session-current-state.md", "- **Session ID**: x\n|" + "a" * 200_000 + "\\\n")
    with (
        Agent(shared_embedded, tmp_path / "hostile") as attacker,
        Agent(shared_embedded, Repository(tmp_path / "other").path) as other,
    ):
        asked = attacker.ask("tools/call", {"name": "session_start", "arguments": {"objective": "freeze"}})
        assert other.think("Is anybody there?")["thoughtNumber"] == 1
        assert "error" not in attacker.answer(asked)
        hostile.write(".holdfast/protocol.toml", "[" + " " * 50_000 + "\n" + "a." * 30_000 + "a = 1\n")
        told = starts(shared_embedded, hostile.path, left_behind(tmp_path / "transcripts", hostile.path))
        assert "is in phase" in told["context"]


def test_a_pipe_in_place_of_gits_files_does_not_keep_the_daemon_waiting(shared_embedded: Guest, tmp_path: Path) -> None:
    project = tmp_path / "piped"
    project.mkdir()
    os.mkfifo(project / ".git")
    with Agent(shared_embedded, project) as agent:
        assert agent.think("A pipe is no repository.")["thoughtNumber"] == 1
