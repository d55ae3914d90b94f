"""The real Claude Code has its tools at its first turn, also when no daemon serves yet."""

from __future__ import annotations

import fcntl
from pathlib import Path

from tests.agents.claude_code import play_claude
from tests.agents.scripted_model import text
from tests.installation import Installation


def test_the_first_turn_has_tools_while_the_daemon_starts(tmp_path: Path) -> None:
    holdfast = Installation(tmp_path / "holdfast")
    holdfast.home.mkdir(mode=0o700)
    (tmp_path / "project").mkdir()
    with (holdfast.home / "starting").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # somebody is starting a daemon, for as long as this run takes
        run, requests = play_claude(
            lambda request: text("I see my tools."),
            tmp_path / "project",
            "Go on.",
            home=tmp_path / "claude",
            mcp_config=holdfast.mcp_config(),
            allowed_tools=["mcp__holdfast"],
        )
        assert holdfast.daemon() is None
    assert not run.is_error, (run.ending, run.stderr)
    assert "mcp__holdfast__thought" in {tool["name"] for tool in requests[0].body["tools"]}
