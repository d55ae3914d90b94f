"""An agent at work: the real Claude Code in one project directory, with Holdfast as its only MCP server."""

from __future__ import annotations

from pathlib import Path

from tests.agents.claude_code import ClaudeRun, play_claude
from tests.agents.scripted_model import Request, Script
from tests.installation import Installation


class Agent:
    """Claude Code in one project directory, with Holdfast as its only MCP server."""

    def __init__(self, holdfast: Installation, place: Path) -> None:
        self.holdfast = holdfast
        self.project = place / "project"
        self.home = place / "claude"

    def run(self, script: Script, *, resume: str | None = None) -> tuple[ClaudeRun, list[Request]]:
        """One process, from its start to its end: the run and what the model was asked."""
        run, requests = play_claude(
            script,
            self.project,
            "Go on.",
            home=self.home,
            mcp_config=self.holdfast.mcp_config(),
            allowed_tools=["mcp__holdfast"],
            resume=resume,
        )
        assert not run.is_error, (run.ending, run.stderr)
        return run, requests
