"""What was acknowledged is on disk, once, whatever dies in between; and no agent behind a relay sees an error."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from tests.installation import Installation
from tests.process.agent import Agent
from tests.process.killing import while_killing
from tests.shared_daemon import Guest

CLIENTS = 4


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("eras", "count", "kills"),
    [
        pytest.param(("legacy", "modern"), 300, 3, id="both-eras-at-once"),
        pytest.param(("legacy",), 2000, 20, id="whole-legacy", marks=pytest.mark.long),
        pytest.param(("modern",), 500, 5, id="whole-modern", marks=pytest.mark.long),
    ],
)
def test_thoughts_survive_many_kills_once_each(
    embedded: Installation, project: Path, eras: tuple[str, ...], count: int, kills: int
) -> None:
    with Agent(embedded, project, era=eras[0]) as first:
        session = first.init("start_new", title="Under fire")["session"]["id"]
    acknowledged: list[dict[int, str]] = [{} for _ in range(CLIENTS)]
    progress = [0] * CLIENTS

    def reason(index: int) -> None:
        with Agent(embedded, project, era=eras[index % len(eras)], session=f"agent-{index}") as agent:
            for number in range(count // CLIENTS):
                text = f"client {index} thought {number}"
                reply = agent.think(text, sessionId=session)
                assert reply["thoughtNumber"] not in acknowledged[index], "a number was given twice"
                acknowledged[index][reply["thoughtNumber"]] = text
                progress[index] = number + 1

    work = [partial(reason, index) for index in range(CLIENTS)]
    failures = while_killing(embedded, work, kills, lambda: sum(progress), count)
    assert failures == []
    told = {number: text for mine in acknowledged for number, text in mine.items()}
    assert len(told) == count
    with Agent(embedded, project, era=eras[-1]) as reader:
        stored: dict[int, str] = {}
        for start in range(1, count + 1, 100):
            page = reader.call("session", operation="get", sessionId=session, **{"from": start, "to": start + 99})
            stored.update((thought["thoughtNumber"], thought["thought"]) for thought in page["thoughts"])
    assert sorted(stored) == list(range(1, count + 1)), "numbers have no gap and no repeat"
    assert stored == told
    verified = embedded.run("verify")
    assert verified.returncode == 0, verified.stdout


def test_a_relay_killed_in_mid_call_leaves_the_session_to_its_successor(shared_embedded: Guest, project: Path) -> None:
    first = Agent(shared_embedded, project, session="the-agent")
    first.think("said before the kill")
    recorded = first.call("session", operation="get")["session"]["id"]
    first.process.kill()
    first.close()
    with Agent(shared_embedded, project, session="the-agent") as second:
        reply = second.think("said after it")
        assert (reply["sessionId"], reply["thoughtNumber"]) == (recorded, 2)


def test_the_same_tool_use_repeated_is_recorded_once(shared_embedded: Guest, project: Path) -> None:
    arguments = {"thought": "only once", "nextThoughtNeeded": True}
    call = {"name": "thought", "arguments": arguments, "_meta": {"claudecode/toolUseId": "toolu_1"}}
    with Agent(shared_embedded, project, session="s") as agent:
        first = agent.request("tools/call", call)["structuredContent"]
        agent.think("something else in between")
    with Agent(shared_embedded, project, session="s") as agent:
        again = agent.request("tools/call", call)["structuredContent"]
        assert again["thoughtNumber"] == first["thoughtNumber"] == 1
        other = {**call, "arguments": {**arguments, "thought": "the same id with another thought"}}
        assert agent.request("tools/call", other)["structuredContent"]["thoughtNumber"] == 3
