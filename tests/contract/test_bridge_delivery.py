"""Messages that reach a live agent with its hooks: handed over once, ended once, and none of them lost."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.contract.bridge_desk import Agent, Desk, caller, denied, words

from holdfast.agents.claude.hooks import HOOKS
from holdfast.agents.claude.settings import PURPOSES, installed
from holdfast.agents.claude.transcripts import receipt
from holdfast.bridge.hook_delivery import LONGEST_TEXT
from holdfast.bridge.hooks import MOST_BLOCKS
from holdfast.bridge.model import MAX_ATTEMPTS, Outcome, Priority
from holdfast.bridge.views import taken_view
from holdfast.teams.team import Delivery, Team

pytestmark = pytest.mark.anyio


# -- messages ---------------------------------------------------------------------------------------------------------


async def test_a_message_comes_with_the_next_prompt_and_ends_with_the_turn(desk: Desk, agent: Agent) -> None:
    sent = await desk.send("Fix the DNS record")
    told = await agent.gets()
    assert f'Message {sent} for homelab, from "owner"' in told and "Fix the DNS record" in told
    assert await desk.figures() == (0, 1)
    assert await agent.stops("The record is fixed.") == ""
    assert await desk.replies() == {sent: "The record is fixed."}
    assert await desk.figures() == (0, 0)


async def test_a_message_sent_while_an_agent_works_is_the_reason_to_go_on(desk: Desk, agent: Agent) -> None:
    await agent.gets()
    first, second = await desk.send("One"), await desk.send("Two")
    assert await agent.used() == ""
    assert f"Message {first}" in await agent.stops("I am done.")
    assert await desk.replies() == {}
    assert f"Message {second}" in await agent.stops("One is done.", again=True)
    assert await agent.stops("Two is done.", again=True) == ""
    assert await desk.replies() == {first: "One is done.", second: "Two is done."}


async def test_an_agent_that_finished_a_message_itself_is_not_spoken_for(desk: Desk, agent: Agent) -> None:
    sent = await desk.send("One")
    await agent.gets()
    await desk.bridge.finish(caller(), sent, Outcome.DONE, "My own words.")
    assert await agent.stops("Something else.") == ""
    assert await desk.replies() == {sent: "My own words."}


async def test_what_is_urgent_comes_in_the_middle_of_a_turn_and_nothing_else_does(desk: Desk, agent: Agent) -> None:
    await agent.gets()
    await desk.send("Some time")
    assert await agent.used() == ""
    urgent = await desk.send("At once", Priority.URGENT)
    assert await agent.used(agent_id="sub-1") == ""
    assert f"Message {urgent}" in await agent.used()
    assert await agent.used() == ""
    assert "Some time" in await agent.stops("It is done.")
    assert await desk.replies() == {urgent: "It is done."}


async def test_an_agent_is_sent_on_seven_times_in_a_row_and_then_let_go(desk: Desk, agent: Agent) -> None:
    for number in range(MOST_BLOCKS + 1):
        await desk.send(f"Number {number}")
    for number in range(MOST_BLOCKS):
        assert f"Number {number}" in await agent.stops("Done.", again=number > 0)
    assert await agent.stops("Done.", again=True) == ""
    assert await desk.figures() == (1, 0)
    assert f"Number {MOST_BLOCKS}" in await agent.stops("Done.")


async def test_an_interrupted_turn_gives_its_message_again_and_says_so(desk: Desk, agent: Agent) -> None:
    sent = await desk.send("One")
    await agent.gets("Work.")
    told = await agent.gets("No, do that first.")
    assert f"Message {sent}" in told and "handed out before" in told
    assert await agent.stops("Now it is done.") == ""
    assert await desk.replies() == {sent: "Now it is done."}


async def test_a_message_that_is_interrupted_again_and_again_is_a_dead_letter(desk: Desk, agent: Agent) -> None:
    sent = await desk.send("One")
    for number in range(MAX_ATTEMPTS):
        assert f"Message {sent}" in await agent.gets(f"Prompt {number}")
    assert await agent.gets("The last one.") == ""
    assert [one["message_id"] for one in await desk.updates("dead_letter")] == [sent]


async def test_what_a_session_still_had_goes_back_when_it_ends(desk: Desk, agent: Agent) -> None:
    sent = await desk.send("One")
    await agent.gets()
    await agent.ends()
    assert await desk.figures() == (1, 0)
    other = desk.agent("b")
    await other.starts()
    assert f"Message {sent}" in await other.gets()


async def test_a_long_message_is_cut_and_can_be_taken_whole(desk: Desk, agent: Agent) -> None:
    text = "x" * (LONGEST_TEXT + 1) + "the end"
    await desk.send(text)
    told = await agent.gets()
    assert len(told) < 10_000 and "the end" not in told and "take_message" in told
    assert text in taken_view(await desk.bridge.take(caller(), "homelab"))["text"]
    assert await agent.stops() == ""
    assert len(await desk.replies()) == 1


# -- what is nobody's business ----------------------------------------------------------------------------------------


async def test_messages_reach_only_the_project_they_are_for(desk: Desk, agent: Agent) -> None:
    await desk.send("For felt", target="felt")
    elsewhere = Agent(desk, "c", desk.home, desk.home / "c.jsonl")
    assert [await agent.gets(), await agent.stops(), await elsewhere.gets()] == ["", "", ""]
    below = desk.agent("b", "felt")
    below.cwd = below.cwd / "sub"
    assert "For felt" in await below.gets()


async def test_an_agent_stays_with_its_target_wherever_it_goes(desk: Desk, agent: Agent) -> None:
    await desk.send("For felt", target="felt")
    await desk.send("For homelab")
    agent.cwd = desk.teams["felt"].project
    assert "For homelab" in await agent.gets()


async def test_managed_agents_are_no_incarnations_and_get_nothing_with_hooks(desk: Desk) -> None:
    await desk.send("One")
    managed = desk.agent("m")
    for event in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"):
        assert await managed.hook(event, holdfast_managed=True, source="startup", prompt="Work.") is None
    assert (await desk.status()).session_id is None
    assert await desk.figures() == (1, 0)


async def test_a_target_that_holdfast_runs_gets_nothing_with_hooks(desk: Desk) -> None:
    desk.teams["homelab"] = Team("homelab", desk.home / "homelab", delivery=Delivery.RUN)
    await desk.send("One", Priority.STOP)
    person = desk.agent("p")
    assert [await person.starts(), await person.gets(), await person.stops()] == ["", "", ""]
    assert await person.uses() is None


async def test_hooks_that_are_there_for_something_else_bring_messages_only_where_a_team_says_so(desk: Desk) -> None:
    project = desk.home / "other"
    installed(project, PURPOSES["protocol"]).write()
    await desk.send("One")
    answers = []
    for delivery in (Delivery.AUTO, Delivery.HOOK):
        desk.teams["homelab"] = Team("homelab", project, delivery=delivery)
        answers.append(await desk.agent().gets())
    assert answers[0] == "" and "One" in answers[1]


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"session_id": 7, "cwd": "/"},
        {"session_id": "a\nb", "cwd": "/"},
        {"session_id": "a"},
        *({"session_id": "a", "cwd": cwd} for cwd in (1, "/\0", "/\ud800", "relative")),
    ],
)
async def test_a_payload_that_says_too_little_is_passed_over(desk: Desk, payload: dict[str, Any]) -> None:
    assert await desk.hooks.handle(HOOKS.event("UserPromptSubmit", payload)) is None


# -- STOP -------------------------------------------------------------------------------------------------------------


async def test_a_stop_denies_every_tool_until_the_turn_ends(desk: Desk, agent: Agent) -> None:
    await agent.gets()
    assert await agent.uses() is None
    sent = await desk.send("STOP, it burns", Priority.STOP)
    denial = await agent.uses()
    assert denied(denial) and "it burns" in words(denial) and sent in words(denial)
    assert denied(await agent.uses("mcp__other__do"))
    assert await agent.stops("I have stopped.") == ""
    assert await desk.replies() == {sent: "I have stopped."}
    assert await agent.uses() is None


async def test_a_stop_holds_for_subagents_but_is_not_handed_to_them(desk: Desk, agent: Agent) -> None:
    await agent.gets()
    await desk.send("STOP", Priority.STOP)
    assert denied(await agent.uses(agent_id="sub-1"))
    assert await desk.figures() == (1, 0)
    assert "STOP" in await agent.used("Task")
    assert denied(await agent.uses(agent_id="sub-1"))
    assert denied(await agent.uses())


async def test_a_stop_holds_for_subagents_that_go_on_after_the_turn_until_the_next_prompt(
    desk: Desk, agent: Agent
) -> None:
    await agent.gets()
    await desk.send("STOP", Priority.STOP)
    assert denied(await agent.uses())
    assert await agent.stops() == ""
    assert denied(await agent.uses(agent_id="sub-1"))
    await agent.gets("<task-notification>\nAnother subagent is done.")
    assert denied(await agent.uses(agent_id="sub-1"))
    assert await agent.uses() is None
    await agent.gets("Go on.")
    assert await agent.uses(agent_id="sub-1") is None


async def test_what_a_subagent_reports_does_not_break_the_turn_off(desk: Desk, agent: Agent) -> None:
    sent = await desk.send("One")
    await agent.gets()
    assert await agent.gets("<task-notification>\nA subagent is done.") == ""
    assert await agent.stops("It is done.") == ""
    assert await desk.replies() == {sent: "It is done."}


async def test_a_stop_that_the_agent_finished_still_holds_until_its_turn_ends(desk: Desk, agent: Agent) -> None:
    await agent.gets()
    sent = await desk.send("STOP", Priority.STOP)
    assert denied(await agent.uses())
    assert await agent.uses("mcp__holdfast__finish_message") is None
    assert await agent.uses("mcp__plugin_holdfast_holdfast__finish_message") is None
    await desk.bridge.finish(caller(), sent, Outcome.DONE, "Stopped.")
    assert denied(await agent.uses())
    assert denied(await agent.uses(agent_id="sub-1"))
    await agent.stops()
    assert await agent.uses() is None


async def test_what_a_stop_halted_is_not_done_and_the_queue_waits_for_the_next_prompt(desk: Desk, agent: Agent) -> None:
    halted, later = await desk.send("Long work"), await desk.send("More work")
    await agent.gets()
    stop = await desk.send("STOP", Priority.STOP)
    assert denied(await agent.uses())
    assert await agent.stops("Halfway.") == ""
    assert await desk.replies() == {halted: "Halted by a STOP. Halfway.", stop: "Halfway."}
    assert f"Message {later}" in await agent.gets("Go on.")


async def test_a_stop_is_over_when_its_turn_was_interrupted(desk: Desk, agent: Agent) -> None:
    await agent.gets()
    sent = await desk.send("STOP", Priority.STOP)
    assert denied(await agent.uses())
    waiting = await desk.send("More work")
    assert await agent.gets("/review") == ""
    assert await desk.replies() == {sent: "The turn was interrupted."}
    assert await agent.uses() is None
    assert f"Message {waiting}" in await agent.stops("Reviewed.")


async def test_a_stop_survives_a_restart_of_holdfast(desk: Desk, agent: Agent) -> None:
    await agent.gets()
    await desk.send("STOP", Priority.STOP)
    assert denied(await agent.uses())
    desk.start_holdfast()
    assert denied(await agent.uses())


async def test_a_stop_to_an_idle_agent_still_holds_what_goes_on_in_the_background(desk: Desk, agent: Agent) -> None:
    await agent.gets()
    await agent.stops()
    sent = await desk.send("STOP", Priority.STOP)
    await desk.hooks.keep()
    assert await desk.replies() == {sent: "Nothing was under way."}
    assert denied(await agent.uses(agent_id="sub-1"))
    await agent.gets("Go on.")
    assert await agent.uses(agent_id="sub-1") is None
    assert await agent.uses() is None


async def test_a_stop_waits_for_a_turn_that_a_new_holdfast_cannot_know_of(desk: Desk, agent: Agent) -> None:
    await agent.gets()
    await desk.send("STOP", Priority.STOP)
    desk.start_holdfast()
    await desk.hooks.keep()
    assert await desk.figures() == (1, 0)
    assert denied(await agent.uses())


async def test_a_stop_that_waits_for_one_agents_turn_is_not_ended_by_anothers_prompt(desk: Desk, agent: Agent) -> None:
    desk.connected.add("a")
    second = desk.agent("b")
    await second.starts()
    await agent.gets()
    sent = await desk.send("STOP", Priority.STOP)
    await desk.hooks.keep()
    assert f"Message {sent}" in await second.gets()
    assert await desk.replies() == {}


# -- answers that are lost, and calls that come twice -----------------------------------------------------------------


async def test_a_message_whose_hook_answer_was_lost_is_handed_over_again_and_not_called_done(
    desk: Desk, agent: Agent
) -> None:
    sent = await desk.send("One")
    await agent.starts("resume")
    agent.deaf = True
    assert f"Message {sent}" in await agent.gets()
    agent.deaf = False
    told = await agent.stops("I know of nothing.")
    assert f"Message {sent}" in told and "handed out before" not in told
    assert await desk.replies() == {}
    assert await agent.stops("Now it is done.", again=True) == ""
    assert await desk.replies() == {sent: "Now it is done."}


async def test_stop_hooks_that_are_called_at_the_same_time_hand_over_one_message(desk: Desk, agent: Agent) -> None:
    sent = await desk.send("One")
    agent.hear(None)
    agent.deaf = True
    answers = await asyncio.gather(*(agent.stops("Done.") for _ in range(4)))
    assert all(f"Message {sent}" in answer for answer in answers)
    assert await desk.replies() == {}
    agent.hear({"reason": answers[0]})
    assert await agent.stops("Done.", again=True) == ""
    assert await desk.replies() == {sent: "Done."}


async def test_a_tool_hook_that_is_called_twice_hands_over_once(desk: Desk, agent: Agent) -> None:
    sent = await desk.send("At once", Priority.URGENT)
    answers = await asyncio.gather(agent.used(), agent.used())
    assert sorted(f"Message {sent}" in answer for answer in answers) == [False, True]


async def test_without_a_transcript_what_was_handed_over_counts_as_seen(desk: Desk, agent: Agent) -> None:
    sent = await desk.send("One")
    await agent.hook("UserPromptSubmit", prompt="Work.", transcript_path=None)
    await agent.hook("Stop", stop_hook_active=False, last_assistant_message="Done.", transcript_path=None)
    assert await desk.replies() == {sent: "Done."}


async def test_what_an_agent_says_can_always_be_stored(desk: Desk, agent: Agent) -> None:
    sent = await desk.send("One")
    await agent.gets()
    assert await agent.stops("a\0b\ud800" + "x" * 200_000) == ""
    assert (await desk.replies())[sent].startswith("ab?xxx")


def test_a_heading_is_found_wherever_it_stands_in_a_transcript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipt, "CHUNK", 16)
    path = tmp_path / "t.jsonl"
    line = json.dumps('[Message "1" für alle]', ensure_ascii=False).encode()
    for before in range(40):
        path.write_bytes(b"-" * before + line + b"-" * 21)
        assert receipt.reached(str(path), {"1": '[Message "1" für alle]', "2": "[Message 2]"}) == {"1"}


def test_a_transcript_that_is_no_file_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path, tmp_path / "missing", "/\0", "/\ud800", "relative", None):
        transcript = str(place) if place is not None else None
        assert receipt.reached(transcript, {"1": "heading"}) == {"1"}
