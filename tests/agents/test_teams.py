"""Teams of real Claude Codes: directional conversations that never leak and survive what ends processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from pathlib import Path
from typing import Any

import pytest
from tests.agents.scripted_model import Reply, Request, ScriptedModel, later, text, tool_use
from tests.agents.teams_world import World, ask, own_world, turns
from tests.installation import kill_all, wait_until
from tests.postgres import PostgresServer, fresh_database
from tests.process.agent import Agent

whole_volume = pytest.mark.long


def asking(caller: Agent, team: str, question: str, **more: Any) -> int:
    """Ask without waiting; the request's id."""
    arguments = {"team": team, "question": question, "timeout": 180_000, **more}
    return caller.ask("tools/call", {"name": "teams_ask", "arguments": arguments})


def test_three_conversations_never_leak_and_each_goes_on(world: World) -> None:
    frontend, backend, mobile = world.names
    pairs = [(frontend, backend), (backend, frontend), (mobile, backend)]
    with world.caller() as caller:
        sessions = {}
        for sender, to in pairs:
            reply = ask(caller, to, f"{sender} asks first", fromTeam=sender)
            assert turns(reply) == 1 and f"{sender} asks first" in reply["response"]
            sessions[sender, to] = reply["conversation"]["sessionId"]
        assert len(set(sessions.values())) == 3
        for sender, to in pairs:
            reply = ask(caller, to, "second", fromTeam=sender)
            assert (turns(reply), reply["conversation"]["sessionId"]) == (2, sessions[sender, to])
        assert turns(ask(caller, backend, "from outside")) == 1
        assert turns(ask(caller, backend, "another thread", fromTeam=frontend, threadId="other")) == 1


def test_a_conversation_goes_on_after_agent_daemon_and_transcript_were_lost(own_world: World) -> None:
    world = own_world
    with world.caller() as caller:
        assert turns(ask(caller, "backend", "one", fromTeam="frontend")) == 1
        kill_all(world.agents())
        assert turns(ask(caller, "backend", "two", fromTeam="frontend")) == 2
        world.holdfast.kill_daemon()
        wait_until(lambda: not world.agents(), "the killed daemon's agents are gone", limit=10)
        assert turns(ask(caller, "backend", "three", fromTeam="frontend")) == 3
        world.holdfast.kill_daemon()
        wait_until(lambda: not world.agents(), "the killed daemon's agents are gone", limit=10)
        shutil.rmtree(world.config / "projects")
        assert turns(ask(caller, "backend", "four", fromTeam="frontend")) == 4


def test_a_conversation_goes_on_on_another_machine_at_another_path(postgres: PostgresServer, tmp_path: Path) -> None:
    with ScriptedModel() as model:
        url = fresh_database(postgres)
        here, there = World(tmp_path / "here", model), World(tmp_path / "there", model)
        try:
            for turn, world in enumerate((here, there, here), start=1):
                world.holdfast.settings["HOLDFAST_DATABASE_URL"] = url
                world.write()
                with world.caller() as caller:
                    assert turns(ask(caller, "backend", f"turn {turn}", fromTeam="frontend")) == turn
                world.holdfast.run("stop")
        finally:
            here.holdfast.close()
            there.holdfast.close()


def test_twenty_first_asks_at_once_are_one_conversation_in_order(world: World) -> None:
    pair = {"team": world.backend, "fromTeam": world.frontend}
    with world.caller() as caller:
        ids = [asking(caller, question=f"n{n}", **pair) for n in range(20)]
        replies = [caller.answer(request)["result"]["structuredContent"] for request in ids]
        assert {reply["status"] for reply in replies} == {"answered"}
        assert len({reply["conversation"]["sessionId"] for reply in replies}) == 1
        seen = {reply["askId"]: turns(reply) for reply in replies}
        history = caller.call("teams_session", operation="history", **pair)
        assert [seen[one["askId"]] for one in reversed(history["asks"])] == list(range(1, 21))


@pytest.mark.parametrize(
    ("pairs", "processes"), [pytest.param(5, 2, id="small"), pytest.param(50, 4, id="whole", marks=whole_volume)]
)
def test_more_pairs_than_processes_are_all_answered_and_none_is_left(
    tmp_path: Path, pairs: int, processes: int
) -> None:
    most = 0
    with own_world(tmp_path, maxProcesses=processes, idleTimeout=1000) as world:
        with world.caller() as caller:
            ids = [asking(caller, world.names[n % 3], "hello", threadId=f"t{n}") for n in range(pairs)]
            with ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(lambda: [caller.answer(request, 180) for request in ids])
                while wait_for([waiting], timeout=0.05).not_done:
                    most = max(most, len(world.sessions()))
                replies = [message["result"]["structuredContent"] for message in waiting.result()]
        assert {reply["status"] for reply in replies} == {"answered"}
        assert {turns(reply) for reply in replies} == {1}
        assert 1 <= most <= processes, f"{most} agents ran at once"
        wait_until(lambda: not world.agents(), "idle agents were ended")


@pytest.mark.parametrize(
    ("asks", "threads"), [pytest.param(8, 3, id="small"), pytest.param(20, 6, id="whole", marks=whole_volume)]
)
def test_asks_outlive_their_caller_and_a_killed_daemon_with_one_outcome_each(
    own_world: World, asks: int, threads: int
) -> None:
    """One caller stays through the kill with asks under way, the other one is gone and somebody else collects."""
    world = own_world

    def send(caller: Agent, n: int) -> str:
        sent = caller.call(
            "teams_send_message",
            toTeam=world.names[n % 3],
            message=f"question {n}",
            threadId=f"t{n % threads}",
            waitForResponse=False,
        )
        assert sent["status"] == "pending"
        return str(sent["askId"])

    with world.caller() as caller:
        with world.caller() as leaving:
            sent = [send(leaving if n % 2 else caller, n) for n in range(asks)]
            wait_until(lambda: bool(world.sessions()), "agents are at work")
            working = world.agents()
            world.holdfast.kill_daemon()
        wait_until(lambda: not any(process.is_running() for process in working), "its agents are gone", limit=10)
        outcomes = {}
        for ask_id in sent:
            done = caller.call("teams_session", operation="wait", askId=ask_id, timeout=120_000)
            assert done["status"] in ("answered", "failed")
            outcomes[ask_id] = done
        answered = [done for done in outcomes.values() if done["status"] == "answered"]
        assert len(answered) >= asks - 2 and all(turns(done) >= 1 for done in answered)
        for ask_id, done in outcomes.items():
            again = caller.call("teams_session", operation="result", askId=ask_id)
            assert (again["status"], again.get("response")) == (done["status"], done.get("response"))
    assert list(world.holdfast.home.rglob("*credentials*")) == []


def test_unknown_teams_cycles_and_notices(world: World) -> None:
    frontend, backend, mobile = world.names
    with world.caller() as caller:
        assert "E_UNKNOWN_TEAM" in caller.refused("teams_ask", team="nobody", question="x")
        assert "E_UNKNOWN_TEAM" in caller.refused("teams_ask", team=backend, question="x", fromTeam="nobody")
        assert "E_ASK_CYCLE" in caller.refused("teams_ask", team=backend, question="x", fromTeam=backend)
        kept = caller.call("teams_notify", toTeam=backend, message="deploys are frozen", fromTeam=mobile)
        assert kept["status"] == "kept"
        reply = ask(caller, backend, "/clear is only text here", fromTeam=frontend)
        assert "deploys are frozen" in reply["response"] and "/clear" in reply["response"]
        shown = caller.call("teams_status", team=backend)["teams"][0]
        assert (shown["team"], shown["processes"]) == (backend, 1)


def test_a_team_in_its_own_project_is_itself(world: World) -> None:
    with Agent(world.holdfast, world.project(world.frontend), session=f"fe{world.suffix}") as frontend:
        names = {tool["name"] for tool in frontend.request("tools/list")["tools"]}
        assert {"teams_ask", "teams_send_message", "teams_notify", "teams_status", "teams_session"} <= names
        reply = ask(frontend, world.backend, "who am I?")
        assert reply["conversation"]["fromTeam"] == world.frontend
    with world.caller() as outside:
        assert "teams_ask" not in {tool["name"] for tool in outside.request("tools/list")["tools"]}


def test_an_agent_killed_in_mid_turn_is_asked_again_and_the_caller_told(world: World) -> None:
    slow = iter([later(30.0, text("never")), text("at the second try")])
    world.model.script = lambda request: next(slow)
    with world.caller() as caller:
        sent = caller.call("teams_send_message", toTeam=world.backend, message="go", waitForResponse=False)
        wait_until(lambda: bool(world.model.requests), "the turn is under way")
        for process in world.agents("claude"):
            os.kill(process.pid, signal.SIGKILL)
        done = caller.call("teams_session", operation="wait", askId=sent["askId"], timeout=60_000)
        assert (done["status"], done["response"]) == ("answered", "at the second try")
        assert "asked again" in done["note"]


def test_a_to_b_to_a_with_one_process_ends_in_a_typed_reply(tmp_path: Path) -> None:
    def script(request: Request) -> Reply:
        if request.tool_results:
            return text(f"I was told: {request.tool_results[-1].text}")
        here = "backend" if "[Message from team frontend" in json.dumps(request.body) else "frontend"
        other = "frontend" if here == "backend" else "backend"
        return tool_use(
            "mcp__holdfast__teams_ask", {"team": other, "question": f"{here} asks {other}", "timeout": 60_000}
        )

    with own_world(tmp_path, script, maxProcesses=1) as world:
        for team in world.teams.values():
            team["allowedTools"] = ["mcp__holdfast"]
        world.write()
        world.config.mkdir(parents=True)
        (world.config / ".claude.json").write_text(json.dumps(world.holdfast.mcp_config()))
        with world.caller() as caller:
            reply = caller.call("teams_ask", team="frontend", question="begin", timeout=100_000)
            assert reply["status"] == "answered", reply
            assert "E_ASK_CYCLE" in reply["response"]
