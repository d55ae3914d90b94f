"""Whoever waits for a team is told what is being waited for."""

from __future__ import annotations

import threading
from typing import Any

from tests.agents.scripted_model import Reply, Request, seen_so_far
from tests.agents.teams_world import World
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
