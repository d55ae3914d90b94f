"""What Holdfast costs an agent before it is used: room in the context."""

from __future__ import annotations

import json
from pathlib import Path

from tests.agents.agent import Agent
from tests.agents.claude_code import run_claude
from tests.agents.scripted_model import Request, ScriptedModel, steps, text
from tests.shared_daemon import Guest

CARRIED_TOKENS = 1_000
CHARACTERS_PER_TOKEN = 4
"""The usual estimate for English and JSON; the model's own tokenizer is not public."""

LISTED_BYTES = 6 * 1024 + 512


def test_what_an_agent_always_carries_stays_under_a_thousand_tokens(shared_embedded: Guest, tmp_path: Path) -> None:
    agent = Agent(shared_embedded, tmp_path)
    _, (with_holdfast,) = agent.run(steps(text("I see.")))
    with ScriptedModel(steps(text("I see."))) as model:
        run_claude(model, agent.project, "Go on.", home=agent.home, allowed_tools=["mcp__holdfast"])
    (without,) = model.requests
    assert "mcp__holdfast__thought" in with_holdfast.tools
    carried = (size(with_holdfast) - size(without)) / CHARACTERS_PER_TOKEN
    assert 0 < carried <= CARRIED_TOKENS


def test_the_list_of_tools_stays_small(shared_embedded: Guest) -> None:
    listed = shared_embedded.listed_tools()
    names = {tool["name"] for tool in json.loads(listed)["result"]["tools"]}
    assert {"thought", "init", "session"} <= names
    assert len(listed) < LISTED_BYTES


def size(request: Request) -> int:
    """Characters of all that the model was given: system prompt, messages and loaded tools."""
    return len(request.text) + len(json.dumps(list(request.tools.values()), separators=(",", ":"), ensure_ascii=False))
