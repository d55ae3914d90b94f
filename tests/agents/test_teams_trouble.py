"""What goes wrong with real agents ends in a typed reply, and what needs a word waits for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.agents.scripted_model import Request, Script, ScriptedModel, api_error, later, text, tool_use
from tests.agents.test_teams import World
from tests.installation import wait_until
from tests.process.agent import Agent


@contextmanager
def _world(place: Path, script: Script, **settings: Any) -> Iterator[tuple[World, Agent, ScriptedModel]]:
    with ScriptedModel(script) as model:
        world = World(place, model)
        world.settings |= settings
        world.write()
        try:
            with world.caller() as caller:
                yield world, caller, model
        finally:
            world.holdfast.close()


def _ask(caller: Agent, **more: Any) -> dict[str, Any]:
    return caller.call("teams_ask", team="backend", question="go", timeout=60_000, **more)


def test_an_error_of_the_agent_is_an_error_not_an_answer(tmp_path: Path) -> None:
    with _world(tmp_path, lambda request: api_error(400)) as (_, caller, _model):
        reply = _ask(caller)
        assert (reply["status"], reply["error"]) == ("failed", "E_AGENT_ERROR")
        assert "response" not in reply


def test_an_agent_that_shows_no_sign_of_life_is_stopped(tmp_path: Path) -> None:
    with _world(tmp_path, lambda request: later(60.0, text("too late")), stallTimeout=3000) as (world, caller, _model):
        reply = _ask(caller)
        assert (reply["status"], reply["error"]) == ("failed", "E_AGENT_STALLED")
        wait_until(lambda: not world.sessions(), "the stalled agent was ended")


def test_a_caller_that_gives_up_loses_nothing(tmp_path: Path) -> None:
    with _world(tmp_path, lambda request: later(4.0, text("worth the wait"))) as (_, caller, _model):
        pending = caller.call("teams_ask", team="backend", question="go", timeout=500)
        assert pending["status"] == "pending" and "askId" in pending
        done = caller.call("teams_session", operation="wait", askId=pending["askId"], timeout=60_000)
        assert (done["status"], done["response"]) == ("answered", "worth the wait")


def test_a_cancelled_turn_is_interrupted_and_the_conversation_goes_on(tmp_path: Path) -> None:
    replies = iter([later(60.0, text("never")), text("the next one")])
    with _world(tmp_path, lambda request: next(replies)) as (_, caller, model):
        sent = caller.call("teams_send_message", toTeam="backend", message="go", waitForResponse=False)
        wait_until(lambda: bool(model.requests), "the turn is under way")
        cancelled = caller.call("teams_session", operation="cancel", askId=sent["askId"])
        assert cancelled["status"] == "cancelled"
        began = time.monotonic()
        reply = _ask(caller)
        assert (reply["status"], reply["response"]) == ("answered", "the next one")
        assert time.monotonic() - began < 50, "it did not wait for the cancelled turn"


def test_a_spent_budget_refuses_by_name(tmp_path: Path) -> None:
    with ScriptedModel() as model:
        world = World(tmp_path, model)
        world.teams["backend"]["maxCostUsdPerDay"] = 0.000001
        world.write()
        try:
            with world.caller() as caller:
                assert _ask(caller)["status"] == "answered"
                second = _ask(caller)
                assert (second["status"], second["error"]) == ("failed", "E_BUDGET")
        finally:
            world.holdfast.close()


def _touch_then_tell(path: Path) -> Script:
    def script(request: Request) -> Any:
        if request.tool_results:
            return text(f"the tool said: {request.tool_results[-1].text}")
        return tool_use("Bash", {"command": f"touch {path}", "description": "touch a file"})

    return script


def test_what_nobody_allowed_is_denied_by_default(tmp_path: Path) -> None:
    made = tmp_path / "made"
    with _world(tmp_path, _touch_then_tell(made)) as (_, caller, _model):
        assert _ask(caller)["status"] == "answered"
        assert not made.exists()


def test_policy_ask_waits_for_the_owners_word(tmp_path: Path) -> None:
    made = tmp_path / "made"
    with ScriptedModel(_touch_then_tell(made)) as model:
        world = World(tmp_path, model)
        world.teams["backend"]["policy"] = "ask"
        world.write()
        try:
            with world.caller() as caller:
                sent = caller.call("teams_send_message", toTeam="backend", message="go", waitForResponse=False)
                wait_until(lambda: "backend: Bash" in world.holdfast.run("approve").stdout, "the request is there")
                assert not made.exists()
                request = world.holdfast.run("approve").stdout.split()[0]
                assert "Allowed: Bash" in world.holdfast.run("approve", request[:8]).stdout
                done = caller.call("teams_session", operation="wait", askId=sent["askId"], timeout=60_000)
                assert done["status"] == "answered"
                assert made.exists()
        finally:
            world.holdfast.close()


def test_a_conversation_is_compacted_on_request(tmp_path: Path) -> None:
    with _world(tmp_path, lambda request: text("a summary, or an answer")) as (_, caller, _model):
        before = _ask(caller)
        done = caller.call("teams_session", operation="compact", team="backend")
        assert done["status"] == "compacted"
        after = _ask(caller)
        assert after["conversation"]["sessionId"] == before["conversation"]["sessionId"]
