"""One PostgreSQL, two machines: the real Claude Code on the other one is told what was done on the first."""

from __future__ import annotations

import subprocess
import uuid
from pathlib import Path

import pytest
from tests.agents.claude_code import run_claude
from tests.agents.scripted_model import ScriptedModel, steps, text, tool_use
from tests.installation import Installation
from tests.postgres import fresh_database, postgres_server

from holdfast.claude_settings import PURPOSES, installed


class Machine:
    """A home of its own, a Claude Code configuration of its own, and the project at a path of its own."""

    def __init__(self, place: Path, name: str, url: str) -> None:
        self.holdfast = Installation(place / name / "holdfast")
        self.holdfast.settings["HOLDFAST_DATABASE_URL"] = url
        self.claude_home = place / name / "claude"
        self.project = place / name / f"fence-on-{name}"
        self.project.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        remote = ["remote", "add", "origin", "https://example.org/dev/fence.git"]
        subprocess.run(["git", "-C", str(self.project), *remote], check=True)
        self.holdfast.serve()
        installed(self.project, PURPOSES["briefing"], home=str(self.holdfast.home)).write()


@pytest.mark.timeout(300)
def test_with_one_postgres_another_machine_goes_on_without_an_archive(tmp_path: Path) -> None:
    with postgres_server() as server:
        url = fresh_database(server)
        first, second = Machine(tmp_path, "first", url), Machine(tmp_path, "second", url)
        session = str(uuid.uuid4())
        try:
            post = tool_use("Write", {"file_path": str(first.project / "north.txt"), "content": "a post\n"})
            with ScriptedModel(steps(post, text("Half done."))) as model:
                run = run_claude(
                    model,
                    first.project,
                    "Mend the fence, north side first.",
                    home=first.claude_home,
                    session_id=session,
                    allowed_tools=["Write"],
                )
            assert not run.is_error, (run.ending, run.stderr)
            with ScriptedModel(steps(text("Hello."))) as model:
                run = run_claude(model, second.project, "Hello.", home=second.claude_home)
            assert not run.is_error, (run.ending, run.stderr)
            told = model.requests[0].text
            assert "Mend the fence, north side first." in told and "north.txt" in told
            assert f"claude --resume {session}" in told
            with ScriptedModel(steps(text("Going on."))) as model:
                run = run_claude(model, second.project, "Go on.", home=second.claude_home, resume=session)
            assert not run.is_error, (run.ending, run.stderr)
            went_on = model.requests[0]
            assert "Mend the fence, north side first." in went_on.text and "Half done." in went_on.text
        finally:
            first.holdfast.close()
            second.holdfast.close()
