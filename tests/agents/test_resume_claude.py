"""`holdfast resume` at a terminal starts the real Claude Code in the conversation that was cut off."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.agents.claude_code import written_down
from tests.agents.scripted_model import Reply, Request, ScriptedModel, text
from tests.agents.terminal import Terminal
from tests.installation import HOLDFAST, PATIENCE, Installation, wait_until


def test_a_conversation_that_was_cut_off_goes_on_with_one_command(embedded: Installation, tmp_path: Path) -> None:
    project, config = tmp_path / "shop", tmp_path / "home" / ".claude"
    project.mkdir()
    crash = threading.Event()

    def answers_after_the_crash(request: Request) -> Reply:
        crash.wait(PATIENCE)
        return text("Understood.")

    with ScriptedModel(answers_after_the_crash) as model:
        with Terminal(model, project, config, mcp_config={"mcpServers": {}}) as crashed:
            crashed.type("Mend the drawer")
            written_down(config, "Mend the drawer")
        crash.set()
        with Terminal(
            model,
            project,
            config,
            mcp_config={},
            started_by=[str(HOLDFAST), "resume"],
            variables=embedded.settings,
        ) as resumed:
            resumed.type("Go on")
            wait_until(lambda: "Go on" in crashed.transcript(), "it is the same conversation")
    assert "Mend the drawer" in str(model.requests[-1].messages)
