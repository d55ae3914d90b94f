"""An agent that is idle at its terminal: when it is, what its owner is asked, and what it is told afterwards."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.bridge_desk import Agent, Desk
from tests.transcripts import Transcript

from holdfast.bridge import idle
from holdfast.bridge.hooks import QUIET_S
from holdfast.bridge.model import IdleDecision, Outcome
from holdfast.bridge.queries import idle as idle_queries
from holdfast.bridge.queries import queue
from holdfast.store import Tx

pytestmark = pytest.mark.anyio

INTERRUPTED = "[Request interrupted by user for tool use]"


async def idle_session(desk: Desk) -> str | None:
    await desk.hooks.keep()
    return await desk.hooks.idle("homelab")


async def later(desk: Desk, seconds: float = 60) -> str | None:
    desk.now += seconds
    return await idle_session(desk)


async def asked(desk: Desk, session: str = "a") -> list[str]:
    """Ask the owner; the questions so far."""
    await desk.store.write(lambda tx: idle.ask(tx, "homelab", session, 60))
    return [one["content"] for one in await desk.updates("idle")]


async def decided(desk: Desk, decision: IdleDecision, question: str = "") -> str:
    return await desk.store.write(lambda tx: idle.decide(tx, "homelab", question, decision))


async def answered_by_a_copy(desk: Desk, message_id: str, reply: str) -> None:
    def write(tx: Tx) -> None:
        taken = queue.take(tx, "homelab", "daemon:here", idle_queries.COPY, 60_000)
        assert taken is not None and taken.id == message_id
        queue.finish(tx, taken, Outcome.DONE, reply)

    await desk.store.write(write)


def wrote(agent: Agent, transcript: Transcript) -> None:
    """The agent's transcript goes on with these entries."""
    with agent.transcript.open("ab") as file:
        file.writelines(transcript.lines)


async def test_an_agent_is_idle_once_its_target_s_time_is_over_and_no_turn_is_under_way(
    desk: Desk, agent: Agent
) -> None:
    assert await later(desk, 59) is None
    assert await later(desk, 1) == "a"
    await agent.gets()
    assert await later(desk) is None, "a turn is under way"
    await agent.stops()
    assert await idle_session(desk) is None
    desk.teams["homelab"] = replace(desk.teams["homelab"], idle_seconds=5)
    assert await later(desk, 5) == "a"


async def test_an_agent_beside_another_that_works_is_not_asked_about(desk: Desk, agent: Agent) -> None:
    desk.connected.add("a")
    second = desk.agent("b")
    await second.starts()
    await second.gets()
    assert await later(desk) is None
    await second.stops()
    assert await later(desk) == "a"


async def test_an_interrupted_turn_is_read_from_the_transcript_and_gives_its_message_back(
    desk: Desk, agent: Agent
) -> None:
    desk.connected.add("a")
    sent = await desk.send("Fix the DNS record")
    assert sent in await agent.gets()
    await agent.uses()
    transcript = Transcript(agent.cwd)
    transcript.ask("Work.")
    call = transcript.call("Bash", {"command": "make"})
    wrote(agent, transcript)
    assert await later(desk) is None and await later(desk, QUIET_S) is None, "a tool may take its time"
    assert await desk.figures() == (0, 1)
    transcript.entries.clear()
    transcript.answer(call, "The user doesn't want to proceed", error=True)
    transcript.ask(INTERRUPTED)
    transcript.add("system", subtype="turn_duration", durationMs=119)
    wrote(agent, transcript)
    assert await idle_session(desk) == "a"
    assert await desk.figures() == (1, 0)
    assert "handed out before" in await agent.gets()


async def test_a_prompt_that_was_taken_back_leaves_no_trace_and_counts_as_over_after_a_while(
    desk: Desk, agent: Agent
) -> None:
    desk.connected.add("a")
    await agent.gets()
    transcript = Transcript(agent.cwd)
    transcript.ask("Work.")
    wrote(agent, transcript)
    assert await later(desk) is None
    assert await later(desk, QUIET_S) == "a"


async def test_a_new_daemon_reads_from_the_transcript_whether_a_turn_is_under_way(desk: Desk, agent: Agent) -> None:
    desk.connected.add("a")
    await agent.gets()
    transcript = Transcript(agent.cwd)
    transcript.ask("Work.")
    wrote(agent, transcript)
    desk.start_holdfast()
    assert await idle_session(desk) is None
    assert await later(desk) is None
    transcript.entries.clear()
    transcript.say("Done.")
    wrote(agent, transcript)
    assert await idle_session(desk) == "a"


async def test_the_owner_is_asked_once_for_each_time_that_the_agent_is_idle(desk: Desk, agent: Agent) -> None:
    assert await asked(desk) == [], "nothing waits"
    await desk.send("One")
    assert len(await asked(desk)) == len(await asked(desk)) == 1
    await agent.gets()
    await agent.stops()
    await desk.send("Two")
    questions = await asked(desk)
    assert len(questions) == 2 and "1 message is waiting" in questions[-1]


async def test_a_decision_holds_until_the_agent_is_at_work_again_and_may_be_changed_until_then(
    desk: Desk, agent: Agent
) -> None:
    assert "Nothing is asked" in await decided(desk, IdleDecision.FORK)
    await desk.send("One")
    await asked(desk)
    assert "A copy" in await decided(desk, IdleDecision.FORK)
    assert "Nothing is asked" in await decided(desk, IdleDecision.FORK, "another-question")
    assert "somebody writes at the terminal" in await decided(desk, IdleDecision.WAIT)
    known = await desk.store.read(lambda tx: idle_queries.state(tx, "homelab"))
    assert known is not None and (known.session_id, known.decision) == ("a", "wait")
    assert "One" in await agent.gets()
    assert "at work again" in await decided(desk, IdleDecision.FORK, known.question)


async def test_the_agent_is_told_what_a_copy_answered_until_that_stands_in_its_transcript(
    desk: Desk, agent: Agent
) -> None:
    sent = await desk.send("Which word?\nsecond line")
    await answered_by_a_copy(desk, sent, "MANGO\n\n[The copy changed a.txt]")
    agent.deaf = True
    await agent.starts("resume")
    agent.hear(None)
    first = await agent.gets("/help")
    assert first == "", "a command may not reach the model"
    for _ in range(2):  # the first answer is lost
        told = await agent.gets()
        assert f"Message {sent} for homelab" in told and "answered by a copy" in told
        assert "> Which word?" in told and "> second line" in told and "> [The copy changed a.txt]" in told
        agent.deaf = False
    assert "answered by a copy" not in await agent.gets()
    assert await desk.replies() == {sent: "MANGO\n\n[The copy changed a.txt]"}


async def test_the_agent_is_told_of_many_answers_with_one_prompt_after_the_other(desk: Desk, agent: Agent) -> None:
    for number in range(7):
        await answered_by_a_copy(desk, await desk.send(f"Question {number}"), "MANGO")
    told = [await agent.gets() for _ in range(4)]
    assert [one.count("was answered by a copy of this") for one in told] == [3, 3, 1, 0]
    assert "[4 more messages were answered by a copy" in told[0] and "[1 more message was" in told[1]
    assert all(f"> Question {number}" in told[number // 3] for number in range(7))


async def test_of_two_agents_the_one_whose_conversation_was_copied_is_told(desk: Desk, agent: Agent) -> None:
    desk.connected.add("a")
    second = desk.agent("b")
    await second.starts()
    await answered_by_a_copy(desk, await desk.send("Which word?"), "MANGO")
    assert "answered by a copy" not in await second.gets()
    assert "answered by a copy" in await agent.gets()
