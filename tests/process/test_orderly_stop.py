"""An orderly stop tells no agent that a call failed: what it does not answer is repeated, and takes effect once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.installation import Installation, wait_until
from tests.postgres import PostgresServer, fresh_database
from tests.process.agent import Agent

CLIENTS = 8
PIPELINED = 4
"""How many calls each client has under way at once: a stop always finds some at every step of their way."""


def _term(holdfast: Installation) -> None:
    pid = holdfast.daemon()
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: holdfast.daemon() != pid, "the daemon has ended")


def _take_over(holdfast: Installation) -> None:
    holdfast.serve(another_than=holdfast.daemon())


# Which engine there is does not change how a stop goes, so each is tried with one of them.
@pytest.mark.parametrize(("end", "engine"), [(_term, "sqlite"), (_take_over, "postgres")], ids=["sigterm", "take-over"])
def test_calls_under_way_when_the_daemon_is_stopped_are_answered_and_take_effect_once(
    embedded: Installation,
    project: Path,
    postgres: PostgresServer,
    end: Callable[[Installation], None],
    engine: str,
) -> None:
    if engine == "postgres":
        embedded.settings["HOLDFAST_DATABASE_URL"] = fresh_database(postgres)
    with Agent(embedded, project) as first:  # its relay starts the daemon, so that `serve` may take over
        session = first.init("start_new", title="Stopped in good order")["session"]["id"]
    told: list[dict[int, str]] = [{} for _ in range(CLIENTS)]
    errors: list[object] = []
    enough = threading.Event()

    def reason(index: int) -> None:
        with Agent(embedded, project, era=("legacy", "modern")[index % 2], session=f"agent-{index}") as agent:
            number = 0
            while not enough.is_set():
                asked = {}
                for _ in range(PIPELINED):
                    text = f"client {index} thought {number}"
                    arguments = {"thought": text, "nextThoughtNeeded": True, "sessionId": session}
                    asked[agent.ask("tools/call", {"name": "thought", "arguments": arguments})] = text
                    number += 1
                for request, text in asked.items():
                    answer = agent.answer(request)
                    if "error" in answer or answer["result"].get("isError"):
                        errors.append(answer)
                    else:
                        told[index][answer["result"]["structuredContent"]["thoughtNumber"]] = text

    threads = [threading.Thread(target=reason, args=(index,)) for index in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: all(told), "everybody is at work")
        end(embedded)
        before = sum(map(len, told))
        wait_until(lambda: sum(map(len, told)) > before + 10 * CLIENTS or bool(errors), "everybody goes on")
    finally:
        enough.set()
        for thread in threads:
            thread.join()
    assert errors == []
    everything = {number: text for mine in told for number, text in mine.items()}
    with Agent(embedded, project) as reader:
        count = reader.call("session", operation="get", sessionId=session)["session"]["thoughtCount"]
    assert sorted(everything) == list(range(1, count + 1)), "each took effect once, and none that was not acknowledged"
    assert len(set(everything.values())) == count
