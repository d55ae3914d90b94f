"""The first minute: Holdfast was just installed, no hook ever ran, and crashed work is on the disk."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.installation import Installation
from tests.process.agent import Agent
from tests.process.hooks import left_behind, starts

from holdfast.agents.claude.transcripts.folder_name import project_key
from holdfast.cli.control import ask_or_do
from holdfast.client import Client, RestError
from holdfast.config import read_settings


@pytest.fixture
def newcomer(embedded: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """An installation of somebody who used Claude Code before."""
    embedded.settings["CLAUDE_CONFIG_DIR"] = str(tmp_path / "claude")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))  # a command in this process has no other either
    return embedded


def folder_of(newcomer: Installation, project: Path) -> Path:
    folder = Path(newcomer.settings["CLAUDE_CONFIG_DIR"]) / "projects" / project_key(project)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def facts(text: str) -> list[str]:
    """A briefing's lines without its heading, which says why it was given."""
    return text.splitlines()[1:]


def test_hook_tool_command_and_rest_give_one_answer_about_work_that_no_hook_saw(
    newcomer: Installation, project: Path
) -> None:
    folder = folder_of(newcomer, project)
    old = left_behind(folder, project)
    without_daemon = json.loads(newcomer.run("resume", str(project), "--json").stdout)
    assert without_daemon["recovered"] == old.stem
    newcomer.serve()
    by_command = newcomer.run("resume", str(project)).stdout
    by_rest = client(newcomer).briefing(str(project))["text"]
    with Agent(newcomer, project) as agent:
        by_tool = agent.call("resume")["briefing"]
    by_hook = starts(newcomer, project, folder / f"{uuid.uuid4()}.jsonl")["context"]
    assert "Mend the fence, north side first." in by_hook and f"claude --resume {old.stem}" in by_hook
    told = facts(by_hook)
    assert facts(by_command) == facts(by_rest) == facts(by_tool) == facts(without_daemon["text"]) == told

    newer = left_behind(folder, project, "Oil the hinges.")
    by_hook = starts(newcomer, project, folder / f"{uuid.uuid4()}.jsonl")["context"]
    for text in (newcomer.run("resume", str(project)).stdout, by_hook):
        assert "Oil the hinges." in text and newer.stem in text


def test_unfinished_work_of_every_project_is_listed_with_and_without_a_daemon(
    newcomer: Installation, tmp_path: Path
) -> None:
    projects = [tmp_path / name for name in ("shop", "api")]
    for project in projects:
        project.mkdir()
        left_behind(folder_of(newcomer, project), project, f"Work in {project.name}.")
    alone = unfinished(newcomer)
    newcomer.serve()
    assert client(newcomer).unfinished() == alone
    assert {one["project"] for one in alone["work"]} == {str(one) for one in projects}
    assert [one["project"] for one in unfinished(newcomer, project=str(projects[0]))["work"]] == [str(projects[0])]
    with pytest.raises(RestError, match="limit"):
        client(newcomer).unfinished(limit=0)


def unfinished(newcomer: Installation, **args: Any) -> dict[str, Any]:
    """The command's answer, as the command line gets it."""
    settings = read_settings({}, home=str(newcomer.home))
    args["config"] = newcomer.settings["CLAUDE_CONFIG_DIR"]
    return ask_or_do(settings, "unfinished", args, lambda share, message: None)


def client(newcomer: Installation) -> Client:
    return Client(newcomer.address(), newcomer.key())
