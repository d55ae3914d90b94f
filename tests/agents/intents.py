"""What agents want, in their own words, and the tool that does it; and the real ToolSearch to ask."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.agents.claude_code import run_claude
from tests.agents.scripted_model import Request, ScriptedModel, reply, steps, text, use
from tests.installation import Installation
from tests.repository import ENVIRONMENT, Repository

PREFIX = "mcp__holdfast__"


@dataclass(frozen=True, slots=True)
class Intent:
    """What an agent wants, and what it should find."""

    words: str
    tool: str


SEARCHED = (
    Intent("start session", "session_start"),
    Intent("start session protocol", "session_start"),
    Intent("finish the protocol phase", "advance_phase"),
    Intent("check whether the gate passes", "validate_gate"),
    Intent("why am I blocked", "get_blocked_reason"),
    Intent("record evidence that the tests passed", "record_evidence"),
    Intent("end the working session", "session_end"),
    Intent("ask the backend team's agent a question", "teams_ask"),
    Intent("send the backend team a message", "teams_send_message"),
    Intent("tell another team without waiting for an answer", "teams_notify"),
    Intent("which teams are busy", "teams_status"),
    Intent("answer to my question from the backend team", "teams_session"),
    Intent("fork the conversation with the backend team", "teams_session"),
    Intent("send a message to the homelab target", "send_message"),
    Intent("leave the homelab agent a message", "send_message"),
    Intent("any updates from the homelab", "pull_updates"),
    Intent("which agents are waiting", "queue_status"),
    Intent("how many messages are waiting", "queue_status"),
    Intent("take the next message from my queue", "take_message"),
    Intent("mark the message done", "finish_message"),
    Intent("init load context", "init"),
    Intent("what was thought before", "init"),
    Intent("search the thoughts of an earlier session", "session"),
    Intent("export reasoning session", "session"),
    Intent("rename this session", "session"),
    Intent("send a message to the homelab agent", "send_message"),
    Intent("what did the homelab agent reply", "pull_updates"),
    Intent("check for messages", "take_message"),
    Intent("reply to the message", "finish_message"),
    Intent("get the answer to my earlier question", "teams_session"),
)
"""What is found by searching, in a project where every tool applies."""


@dataclass(frozen=True, slots=True)
class InHand:
    """What an agent wants and need not search for: the tool is loaded, and says so."""

    words: str
    tool: str
    says: str
    """Where the loaded tool answers the wish, in its description or its schema."""


IN_HAND = (
    InHand("continue where I left off", "resume", "continue"),
    InHand("record a reasoning step", "thought", "Record one step of reasoning"),
    InHand("what did I think about this project before", "resume", "thought and done before in this project"),
    InHand("save my task progress", "save_task", "Save your task and its progress"),
)
"""What is there from the start, in every project."""


@dataclass(frozen=True, slots=True)
class Place:
    """A Holdfast and a project that Claude Code works in."""

    holdfast: Installation
    project: Path

    def search(self, words: Sequence[str], config: Mapping[str, Any] | None = None) -> tuple[Request, list[list[str]]]:
        """Ask ToolSearch in all these words: what the model was given at first, and the tools found for each."""
        asked = [use("ToolSearch", {"query": word, "max_results": 5}) for word in words]
        with ScriptedModel(steps(reply(*asked), text("I see."))) as model:
            run = run_claude(
                model,
                self.project,
                "Go on.",
                home=self.project.parent / "claude",
                mcp_config=config or self.holdfast.mcp_config(),
                allowed_tools=["mcp__holdfast"],
                env=ENVIRONMENT,
            )
        assert not run.is_error, (run.ending, run.stderr)
        first, second = model.requests
        return first, [_named(second, block["id"]) for block in asked]


def places(home: Path) -> tuple[Place, Place]:
    """On one Holdfast, a project without protocol, teams or queue, and one where every tool applies.

    The latter has a protocol, and is a team's and a target's.
    """
    holdfast = Installation(home / "holdfast")
    place = Place(holdfast, home / "full" / "project")
    Repository(place.project, {"README.md": "# A project\n", ".holdfast/protocol.toml": 'protocol = "agents"\n'})
    backend = home / "backend"
    backend.mkdir()
    teams = {"homelab": {"project": str(place.project)}, "backend": {"project": str(backend)}}
    place.holdfast.home.mkdir(mode=0o700)
    (place.holdfast.home / "teams.json").write_text(json.dumps({"teams": teams}))
    return Place(holdfast, home / "plain" / "project"), place


def _named(request: Request, use_id: str) -> list[str]:
    """The tools that one search gave back, best first."""
    for message in request.messages:
        blocks = message["content"] if isinstance(message["content"], list) else []
        for block in blocks:
            if block.get("type") == "tool_result" and block["tool_use_id"] == use_id:
                content = block.get("content")
                assert isinstance(content, list), content
                return [str(part["tool_name"]).removeprefix(PREFIX) for part in content if "tool_name" in part]
    raise AssertionError(f"no answer to {use_id}")
