"""Whoever waits for a team is told what is being waited for."""

from __future__ import annotations

import threading
from typing import Any

from tests.agents.scripted_model import Reply, Request, api_error, seen_so_far, text, tool_use
from tests.agents.teams_world import Company, World
from tests.installation import PATIENCE, wait_until
from tests.process.agent import Agent


def _ask(caller: Agent, world: World, question: str, token: str | None) -> int:
    params: dict[str, Any] = {
        "name": "teams_ask",
        "arguments": {"team": world.backend, "question": question, "timeout": 120_000},
    }
    return caller.ask("tools/call", params if token is None else {**params, "_meta": {"progressToken": token}})


def _waiting(caller: Agent, world: World) -> int:
    return int(caller.call("teams_status", team=world.backend)["teams"][0]["waiting"])


def _told(caller: Agent) -> dict[str, Any]:
    """The next word on how far an ask is."""
    while (message := caller.receive()).get("method") != "notifications/progress":
        caller.seen.append(message)
    return dict(message["params"])


def test_callers_in_both_eras_are_told_while_an_ask_is_worked_on_or_waits_in_the_queue(world: World) -> None:
    at_work, both_were_told = threading.Event(), threading.Event()

    def answered_once_both_were_told(request: Request) -> Reply:
        at_work.set()
        both_were_told.wait(PATIENCE)
        return seen_so_far(request)

    world.model.script = answered_once_both_were_told
    try:
        with world.caller() as first, Agent(world.holdfast, world.place, era="modern") as second:
            asked = _ask(first, world, "one", "first-token")
            assert at_work.wait(PATIENCE), "the first ask is being worked on"
            silent = _ask(second, world, "two", None)
            wait_until(lambda: _waiting(second, world) == 1, "the second ask is in the queue")
            queued = _ask(second, world, "three", "queue-token")
            working, waiting = _told(first), _told(second)
            both_were_told.set()
            assert working["progressToken"] == "first-token"
            assert f"{world.backend} is working on it" in working["message"]
            assert waiting["progressToken"] == "queue-token"
            assert "place 2" in waiting["message"]
            replies = [first.answer(asked), second.answer(silent), second.answer(queued)]
    finally:
        both_were_told.set()
    answers = [reply["result"]["structuredContent"] for reply in replies]
    for told, answer in ((working, answers[0]), (waiting, answers[2])):
        assert answer["askId"] in told["message"]
    assert [answer["status"] for answer in answers] == ["answered"] * 3


def _told_that(caller: Agent, words: str) -> str:
    """The first word of progress that says this."""
    while words not in (message := str(_told(caller)["message"])):
        pass
    return message


def test_the_caller_is_told_of_retries_of_the_tool_in_use_and_of_an_approval_that_is_waited_for(
    company: Company,
) -> None:
    overloaded = threading.Event()
    overloaded.set()
    with company.world(policy="ask") as world, world.caller() as caller:
        made = world.place / "made"

        def script(request: Request) -> Reply:
            if overloaded.is_set():
                return api_error(529)
            if request.tool_results:
                return text("made it")
            command = f"touch {made}.begun; until [ -e {made} ]; do sleep 0.1; done"
            return tool_use("Bash", {"command": command, "description": "wait for the file"})

        world.model.script = script
        asked = _ask(caller, world, "go", "token")
        try:
            assert "answered 529" in _told_that(caller, "trying its model again")
            overloaded.clear()
            waiting = _told_that(caller, "waits until its owner allows Bash")
            request_id = waiting.split("holdfast approve ")[1].split("`")[0]
            with world.caller() as other:
                (shown,) = other.call("teams_status", team=world.backend)["teams"]
            assert [one["id"] for one in shown["approvals"]] == [request_id]
            assert f"holdfast approve {request_id}" in world.holdfast.run("status").stdout
            assert "Allowed: Bash" in world.holdfast.at_terminal("approve", request_id).stdout
            _told_that(caller, "using Bash")
        finally:
            overloaded.clear()
            made.touch()
        answer = caller.answer(asked)["result"]["structuredContent"]
        assert (answer["status"], answer["response"]) == ("answered", "made it")
        assert "approvals" not in caller.call("teams_status", team=world.backend)["teams"][0]
