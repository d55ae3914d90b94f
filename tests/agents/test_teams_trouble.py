"""What goes wrong with real agents ends in a typed reply, and what needs a word waits for it."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from tests.agents.scripted_model import Reply, Request, Script, api_error, later, text, tool_use
from tests.agents.teams_world import Company, World, own_world
from tests.installation import PATIENCE, wait_until
from tests.process.agent import Agent


def _ask(caller: Agent, world: World, **more: Any) -> dict[str, Any]:
    return caller.call("teams_ask", team=world.backend, question="go", timeout=60_000, **more)


def test_an_error_of_the_agent_is_an_error_not_an_answer(world: World) -> None:
    world.model.script = lambda request: api_error(400)
    with world.caller() as caller:
        reply = _ask(caller, world)
        assert (reply["status"], reply["error"]) == ("failed", "E_AGENT_ERROR")
        assert "response" not in reply


def test_an_agent_that_shows_no_sign_of_life_is_stopped(tmp_path: Path) -> None:
    def late(request: Request) -> Reply:
        return later(60.0, text("too late"))

    with own_world(tmp_path, late, stallTimeout=2000) as world, world.caller() as caller:
        reply = _ask(caller, world)
        assert (reply["status"], reply["error"]) == ("failed", "E_AGENT_STALLED")
        wait_until(lambda: not world.sessions(), "the stalled agent was ended")


def test_a_caller_that_gives_up_loses_nothing(world: World) -> None:
    gave_up = threading.Event()

    def once_the_caller_gave_up(request: Request) -> Reply:
        gave_up.wait(PATIENCE)
        return text("worth the wait")

    world.model.script = once_the_caller_gave_up
    with world.caller() as caller:
        pending = caller.call("teams_ask", team=world.backend, question="go", timeout=500)
        assert pending["status"] == "pending" and "askId" in pending
        gave_up.set()
        done = caller.call("teams_session", operation="wait", askId=pending["askId"], timeout=60_000)
        assert (done["status"], done["response"]) == ("answered", "worth the wait")


def test_a_cancelled_turn_is_interrupted_and_the_conversation_goes_on(world: World) -> None:
    replies = iter([later(60.0, text("never")), text("the next one")])
    world.model.script = lambda request: next(replies)
    with world.caller() as caller:
        sent = caller.call("teams_send_message", toTeam=world.backend, message="go", waitForResponse=False)
        wait_until(lambda: bool(world.model.requests), "the turn is under way")
        cancelled = caller.call("teams_session", operation="cancel", askId=sent["askId"])
        assert cancelled["status"] == "cancelled"
        began = time.monotonic()
        reply = _ask(caller, world)
        assert (reply["status"], reply["response"]) == ("answered", "the next one")
        assert time.monotonic() - began < 50, "it did not wait for the cancelled turn"


def test_a_cancelled_turns_tokens_and_cost_count(world: World) -> None:
    note = world.project(world.backend) / "note.txt"
    note.write_text("hello")

    def script(request: Request) -> Reply:
        return later(60.0, text("never")) if request.tool_results else tool_use("Read", {"file_path": str(note)})

    world.model.script = script
    with world.caller() as caller:
        sent = caller.call("teams_send_message", toTeam=world.backend, message="go", waitForResponse=False)
        wait_until(lambda: len(world.model.requests) == 2, "the model was asked twice")

        def told() -> dict[str, Any]:
            return caller.call("teams_session", operation="cancel", askId=sent["askId"])

        wait_until(lambda: told().get("tokens", {}).get("input", 0) > 0, "what the cancelled turn took is stored")
        assert told()["status"] == "cancelled" and told()["costUsd"] > 0


def test_a_spent_budget_refuses_by_name(company: Company) -> None:
    with company.world(maxCostUsdPerDay=0.000001) as world, world.caller() as caller:
        assert _ask(caller, world)["status"] == "answered"
        second = _ask(caller, world)
        assert (second["status"], second["error"]) == ("failed", "E_BUDGET")


def _run_then_tell(command: str, description: str = "as told") -> Script:
    def script(request: Request) -> Reply:
        if request.tool_results:
            return text(f"the tool said: {request.tool_results[-1].text}")
        return tool_use("Bash", {"command": command, "description": description})

    return script


def _touch_then_tell(path: Path) -> Script:
    return _run_then_tell(f"touch {path}")


def test_what_nobody_allowed_is_denied_by_default(world: World) -> None:
    made = world.place / "made"
    world.model.script = _touch_then_tell(made)
    with world.caller() as caller:
        assert _ask(caller, world)["status"] == "answered"
        assert not made.exists()


def test_rights_that_were_taken_away_do_not_hold_for_the_next_turn_of_a_warm_agent(own_world: World) -> None:
    world = own_world
    world.teams[world.backend]["skipPermissions"] = True
    world.write()
    before, after = world.place / "before", world.place / "after"
    with world.caller() as caller:
        world.model.script = _touch_then_tell(before)
        first = _ask(caller, world)
        assert first["status"] == "answered" and before.exists()
        world.teams[world.backend]["skipPermissions"] = False
        world.write()
        world.model.script = _touch_then_tell(after)
        second = _ask(caller, world)
        assert second["status"] == "answered" and not after.exists(), second
        assert second["conversation"]["sessionId"] == first["conversation"]["sessionId"]


def test_policy_ask_waits_for_the_owners_word(company: Company) -> None:
    with company.world(policy="ask") as world, world.caller() as caller:
        made = world.place / "made"
        world.model.script = _touch_then_tell(made)
        asked_for = f"{world.backend}: Bash"
        sent = caller.call("teams_send_message", toTeam=world.backend, message="go", waitForResponse=False)
        wait_until(lambda: asked_for in world.holdfast.run("approve").stdout, "the request is there")
        assert not made.exists()
        (line,) = [line for line in world.holdfast.run("approve").stdout.splitlines() if asked_for in line]
        assert "Allowed: Bash" in world.holdfast.at_terminal("approve", line.split()[0][:8]).stdout
        done = caller.call("teams_session", operation="wait", askId=sent["askId"], timeout=60_000)
        assert done["status"] == "answered"
        assert made.exists()


def test_approve_shows_all_that_would_run_and_nothing_that_steers_the_terminal(company: Company) -> None:
    with company.world(policy="ask") as world, world.caller() as caller:
        made = world.place / "made"
        command = f"echo harmless; {' ' * 200}touch {made}"
        world.model.script = _run_then_tell(command, "\x1b[2K\u202eharmless")
        sent = caller.call("teams_send_message", toTeam=world.backend, message="go", waitForResponse=False)
        wait_until(lambda: f"{world.backend}: Bash" in world.holdfast.run("approve").stdout, "the request is there")
        listed = world.holdfast.run("approve").stdout
        assert f"touch {made}" in listed
        assert "\x1b" not in listed and "\u202e" not in listed and r"\u202e" in listed
        (line,) = [line for line in listed.splitlines() if f"{world.backend}: Bash" in line]
        assert f"touch {made}" in world.holdfast.at_terminal("approve", line.split()[0]).stdout
        done = caller.call("teams_session", operation="wait", askId=sent["askId"], timeout=60_000)
        assert done["status"] == "answered"
        assert made.exists()


def test_what_is_too_long_to_be_shown_is_denied_and_the_agent_told_why(company: Company) -> None:
    with company.world(policy="ask") as world, world.caller() as caller:
        made = world.place / "made"
        world.model.script = _run_then_tell(f"echo {'x' * 10_000}; touch {made}")
        assert "too long to be shown" in _ask(caller, world)["response"]
        assert not made.exists()


def test_a_conversation_is_compacted_on_request(world: World) -> None:
    world.model.script = lambda request: text("a summary, or an answer")
    with world.caller() as caller:
        before = _ask(caller, world)
        done = caller.call("teams_session", operation="compact", team=world.backend)
        assert done["status"] == "compacted"
        after = _ask(caller, world)
        assert after["conversation"]["sessionId"] == before["conversation"]["sessionId"]
