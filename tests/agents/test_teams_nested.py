"""Real agents that ask each other, with one process between them: waiting, cancelling, and what is left then."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.agents.scripted_model import Reply, Request, Script, later, text, tool_use
from tests.agents.teams_world import World, own_world
from tests.installation import PATIENCE, wait_until


@contextmanager
def _asking(place: Path, script: Script) -> Iterator[World]:
    """Teams whose agents may ask each other, with one process between them."""
    with own_world(place, script, maxProcesses=1) as world:
        for team in world.teams.values():
            team["allowedTools"] = ["mcp__holdfast"]
        world.write()
        world.config.mkdir(parents=True)
        (world.config / ".claude.json").write_text(json.dumps(world.holdfast.mcp_config()))
        yield world


def _is_asked(request: Request) -> bool:
    return "[Message from team frontend" in json.dumps(request.body)


def _send_then_wait(request: Request, answer: Reply) -> Reply:
    """The frontend sends the backend a question, and waits for its answer with teams_session."""
    if _is_asked(request):
        return answer
    results = request.tool_results
    if not results:
        sent = {"toTeam": "backend", "message": "a question", "waitForResponse": False}
        return tool_use("mcp__holdfast__teams_send_message", sent)
    told = json.loads(results[-1].text)
    if told["status"] == "pending":
        wait = {"operation": "wait", "askId": told["askId"], "timeout": 60_000}
        return tool_use("mcp__holdfast__teams_session", wait)
    return text(f"it said {told.get('response', told['status'])}")


def test_an_agent_that_waits_for_an_answer_leaves_its_place_to_whoever_gives_it(tmp_path: Path) -> None:
    with (
        _asking(tmp_path, lambda request: _send_then_wait(request, text("forty-two"))) as world,
        world.caller() as caller,
    ):
        reply = caller.call("teams_ask", team="frontend", question="begin", timeout=100_000)
        assert (reply["status"], reply["response"]) == ("answered", "it said forty-two"), reply
        wait_until(lambda: len(world.sessions()) == 1, "one process is left, as teams.json says")
        assert caller.call("teams_status")["processes"] == "1 of 1"


def test_cancelling_an_ask_interrupts_the_agents_that_were_asked_for_it(tmp_path: Path) -> None:
    never = later(PATIENCE * 2, text("never"))
    with _asking(tmp_path, lambda request: _send_then_wait(request, never)) as world, world.caller() as caller:
        sent = caller.call("teams_send_message", toTeam="frontend", message="begin", waitForResponse=False)
        wait_until(lambda: any(map(_is_asked, world.model.requests)), "the backend is at work")
        assert caller.call("teams_session", operation="cancel", askId=sent["askId"])["status"] == "cancelled"

        def at_rest() -> bool:
            teams = caller.call("teams_status")["teams"]
            return not any(team["busy"] or team["running"] or team["waiting"] for team in teams)

        wait_until(at_rest, "both turns have ended")
        (conversation,) = [
            one
            for one in caller.call("teams_session", operation="list", team="backend")["conversations"]
            if one.get("fromTeam") == "frontend"
        ]
        (asked,) = caller.call(
            "teams_session", operation="history", team="backend", fromTeam="frontend", threadId=conversation["threadId"]
        )["asks"]
        assert asked["status"] == "cancelled"
        world.model.script = lambda request: text("the next one")
        assert caller.call("teams_ask", team="backend", question="next", timeout=60_000)["status"] == "answered"
