"""The real Claude Code holds on to its thoughts through `holdfast mcp`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.agents.agent import Agent
from tests.agents.scripted_model import Reply, Request, steps, text, tool_use
from tests.installation import Installation
from tests.shared_daemon import Guest

THOUGHT = "mcp__holdfast__thought"
INIT = "mcp__holdfast__init"
SESSION = "mcp__holdfast__session"


def think(words: str, **more: Any) -> Reply:
    return tool_use(THOUGHT, {"thought": words, "nextThoughtNeeded": True, **more})


def load_context() -> Reply:
    return tool_use(INIT, {"operation": "load_context"})


def answer_to_last_call(request: Request) -> dict[str, Any]:
    """The structured content of the one tool that was called, as the model was given it."""
    (result,) = request.tool_results
    assert not result.is_error, result.text
    content = result.json()
    assert isinstance(content, dict)
    return content


def test_the_tools_are_there_on_the_first_turn(shared_embedded: Guest, tmp_path: Path) -> None:
    run, (first,) = Agent(shared_embedded, tmp_path).run(steps(text("I see.")))
    assert run.mcp_servers == {"holdfast": "connected"}
    schema = first.tools[THOUGHT]["input_schema"]
    assert {"thought", "nextThoughtNeeded", "branchId"} <= schema["properties"].keys()
    for name in (INIT, SESSION):
        assert name in first.tools or name in first.text.splitlines(), f"{name} is neither loaded nor named"
    assert "load_context" in first.text, "the instructions do not say how to find a session again"


def test_a_thought_comes_back_to_a_resumed_conversation_and_to_a_new_one(
    shared_embedded: Guest, tmp_path: Path
) -> None:
    agent = Agent(shared_embedded, tmp_path)
    words = "The lock is taken twice when the heron lands."
    recorded, requests = agent.run(steps(think(words), text("Noted.")))
    noted = answer_to_last_call(requests[-1])
    assert noted["thoughtNumber"] == noted["thoughtCount"] == 1

    for resume in (recorded.session_id, None):
        run, requests = agent.run(steps(load_context(), text("I remember.")), resume=resume)
        assert (run.session_id == recorded.session_id) is (resume is not None)
        context = answer_to_last_call(requests[-1])
        assert context["success"] is True
        assert context["session"]["id"] == noted["sessionId"]
        assert [thought["thought"] for thought in context["thoughts"]] == [words]


def test_the_model_is_given_all_it_needs_to_go_on_where_it_was(shared_embedded: Guest, tmp_path: Path) -> None:
    agent = Agent(shared_embedded, tmp_path)
    agent.run(
        steps(
            think("One way."),
            think("Another way.", branchFromThought=1, branchId="other"),
            think("Not so.", isRevision=True, revisesThought=1),
            text("Noted."),
        )
    )
    _, requests = agent.run(steps(load_context(), text("I remember.")))
    context = answer_to_last_call(requests[-1])
    assert context["nextThoughtNumber"] == 4
    assert [thought["thought"] for thought in context["thoughts"]] == ["One way.", "Another way.", "Not so."]
    assert [(branch["branchId"], branch["fromThought"]) for branch in context["branches"]] == [("other", 1)]
    metadata = context["session"]
    assert metadata.keys() >= {"id", "title", "tags", "createdAt", "updatedAt", "mcpRootUri", "status", "pinned"}
    assert (metadata["thoughtCount"], metadata["branchCount"]) == (3, 1)
    assert metadata["mcpRootUri"] == agent.project.resolve().as_uri()


def test_an_agent_does_not_notice_that_the_daemon_was_killed(holdfast: Installation, tmp_path: Path) -> None:
    killed: list[int] = []

    def kill_then_think(request: Request) -> Reply:
        killed.append(holdfast.kill_daemon())
        return think("After.")

    _, requests = Agent(holdfast, tmp_path).run(steps(think("Before."), kill_then_think, load_context(), text("Done.")))
    before, after, context = (answer_to_last_call(request) for request in requests[1:])
    assert (after["sessionId"], after["thoughtNumber"]) == (before["sessionId"], 2)
    assert [thought["thought"] for thought in context["thoughts"]] == ["Before.", "After."]
    assert holdfast.daemon() not in killed


def test_a_refused_thought_tells_the_model_what_to_change(shared_embedded: Guest, tmp_path: Path) -> None:
    script = steps(think("Off the map.", branchFromThought=7, branchId="far"), think("Here."), text("I see."))
    _, requests = Agent(shared_embedded, tmp_path).run(script)
    (refused,) = requests[1].tool_results
    assert refused.is_error
    assert "branchFromThought" in refused.text
    assert answer_to_last_call(requests[2])["thoughtNumber"] == 1
