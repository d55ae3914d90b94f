"""Teams of real Claude Codes: directional conversations that never leak and survive what ends processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.agents.scripted_model import ScriptedModel
from tests.installation import Installation, wait_until
from tests.process.agent import Agent

TEAMS = ("frontend", "backend", "mobile")


class World:
    """Teams whose agents talk to a model that tells how many turns it has seen."""

    def __init__(self, place: Path, model: ScriptedModel, installation: Installation | None = None) -> None:
        self.place = place
        self.config = place / "claude"
        self.holdfast = installation or Installation(place / "holdfast")
        self.settings: dict[str, Any] = {"maxProcesses": 4}
        env = {
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "sk-test",
            "CLAUDE_CONFIG_DIR": str(self.config),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }
        self.teams: dict[str, dict[str, Any]] = {}
        for name in TEAMS:
            (place / name).mkdir(parents=True, exist_ok=True)
            self.teams[name] = {"project": str(place / name), "env": env}

    def write(self) -> None:
        """Write teams.json."""
        self.holdfast.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        document = {"settings": self.settings, "teams": self.teams}
        (self.holdfast.home / "teams.json").write_text(json.dumps(document))

    def caller(self) -> Agent:
        """Somebody who asks teams, from outside all projects."""
        outside = self.place / "outside"
        outside.mkdir(exist_ok=True)
        return Agent(self.holdfast, outside, session="asker")

    def agents(self, name: str | None = None) -> list[psutil.Process]:
        """The processes that run in these teams' projects; those of one name."""
        projects = tuple(str(self.place / name) for name in TEAMS)
        found = []
        for process in psutil.process_iter():
            try:
                alive = process.status() != psutil.STATUS_ZOMBIE and process.cwd() in projects
                if alive and name in (None, process.name()):
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return found

    def sessions(self) -> set[str]:
        """The conversations that an agent process is at work on."""
        found = set()
        for process in self.agents("claude"):
            try:
                line = process.cmdline()
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
            found |= {
                argument.partition("=")[2] for argument in line if argument.startswith(("--session-id=", "--resume="))
            }
        return found


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with ScriptedModel() as model:
        made = World(tmp_path, model)
        made.write()
        try:
            yield made
        finally:
            made.holdfast.close()


def _ask(caller: Agent, team: str, question: str, **more: Any) -> dict[str, Any]:
    reply = caller.call("teams_ask", team=team, question=question, timeout=60_000, **more)
    assert reply["status"] == "answered", reply
    return reply


def _turns(reply: dict[str, Any]) -> int:
    return int(reply["response"].split("I have seen ")[1].split(" ")[0])


def test_three_conversations_never_leak_and_each_goes_on(world: World) -> None:
    pairs = [("frontend", "backend"), ("backend", "frontend"), ("mobile", "backend")]
    with world.caller() as caller:
        sessions = {}
        for sender, to in pairs:
            reply = _ask(caller, to, f"{sender} asks first", fromTeam=sender)
            assert _turns(reply) == 1 and f"{sender} asks first" in reply["response"]
            sessions[sender, to] = reply["conversation"]["sessionId"]
        assert len(set(sessions.values())) == 3
        for sender, to in pairs:
            reply = _ask(caller, to, "second", fromTeam=sender)
            assert (_turns(reply), reply["conversation"]["sessionId"]) == (2, sessions[sender, to])
        assert _turns(_ask(caller, "backend", "from outside")) == 1
        assert _turns(_ask(caller, "backend", "another thread", fromTeam="frontend", threadId="other")) == 1


def test_a_conversation_goes_on_after_agent_daemon_and_transcript_were_lost(world: World) -> None:
    with world.caller() as caller:
        assert _turns(_ask(caller, "backend", "one", fromTeam="frontend")) == 1
        for process in world.agents():
            process.kill()
        assert _turns(_ask(caller, "backend", "two", fromTeam="frontend")) == 2
        world.holdfast.kill_daemon()
        wait_until(lambda: not world.agents(), "the killed daemon's agents are gone", limit=10)
        assert _turns(_ask(caller, "backend", "three", fromTeam="frontend")) == 3
        world.holdfast.kill_daemon()
        wait_until(lambda: not world.agents(), "the killed daemon's agents are gone", limit=10)
        shutil.rmtree(world.config / "projects")
        assert _turns(_ask(caller, "backend", "four", fromTeam="frontend")) == 4


def test_a_conversation_goes_on_on_another_machine_at_another_path(tmp_path: Path) -> None:
    from tests.postgres import fresh_database, postgres_server

    with postgres_server() as server, ScriptedModel() as model:
        url = fresh_database(server)
        here, there = World(tmp_path / "here", model), World(tmp_path / "there", model)
        try:
            for turn, world in enumerate((here, there, here), start=1):
                world.holdfast.settings["HOLDFAST_DATABASE_URL"] = url
                world.write()
                with world.caller() as caller:
                    assert _turns(_ask(caller, "backend", f"turn {turn}", fromTeam="frontend")) == turn
                world.holdfast.run("stop")
        finally:
            here.holdfast.close()
            there.holdfast.close()


def test_twenty_first_asks_at_once_are_one_conversation_in_order(world: World) -> None:
    with world.caller() as caller:
        ids = [
            caller.ask(
                "tools/call",
                {
                    "name": "teams_ask",
                    "arguments": {"team": "backend", "question": f"n{n}", "fromTeam": "frontend", "timeout": 120_000},
                },
            )
            for n in range(20)
        ]
        replies = [caller.answer(request)["result"]["structuredContent"] for request in ids]
        assert {reply["status"] for reply in replies} == {"answered"}
        assert len({reply["conversation"]["sessionId"] for reply in replies}) == 1
        turns = {reply["askId"]: _turns(reply) for reply in replies}
        history = caller.call("teams_session", operation="history", team="backend", fromTeam="frontend")
        assert [turns[ask["askId"]] for ask in reversed(history["asks"])] == list(range(1, 21))


def test_more_pairs_than_processes_are_all_answered_and_none_is_left(world: World) -> None:
    world.settings |= {"maxProcesses": 4, "idleTimeout": 1000}
    world.write()
    most = 0
    with world.caller() as caller:
        ids = [
            caller.ask(
                "tools/call",
                {
                    "name": "teams_ask",
                    "arguments": {"team": TEAMS[n % 3], "question": "hello", "threadId": f"t{n}", "timeout": 180_000},
                },
            )
            for n in range(50)
        ]
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(lambda: [caller.answer(request, 180) for request in ids])
            while not waiting.done():
                most = max(most, len(world.sessions()))
            replies = [message["result"]["structuredContent"] for message in waiting.result()]
    assert {reply["status"] for reply in replies} == {"answered"}
    assert {_turns(reply) for reply in replies} == {1}
    assert 1 <= most <= 4, f"{most} agents ran at once"
    wait_until(lambda: not world.agents(), "idle agents were ended")


def test_an_ask_outlives_its_caller_and_the_daemon(world: World) -> None:
    with world.caller() as caller:
        sent = caller.call("teams_send_message", toTeam="backend", message="think about it", waitForResponse=False)
        assert sent["status"] == "pending" and sent["askId"]
        world.holdfast.kill_daemon()
    with world.caller() as caller:
        done = caller.call("teams_session", operation="wait", askId=sent["askId"], timeout=60_000)
        assert (done["status"], _turns(done) >= 1) == ("answered", True)
        again = caller.call("teams_session", operation="result", askId=sent["askId"])
        assert again["response"] == done["response"]


def test_unknown_teams_cycles_and_notices(world: World) -> None:
    with world.caller() as caller:
        assert "E_UNKNOWN_TEAM" in caller.refused("teams_ask", team="nobody", question="x")
        assert "E_UNKNOWN_TEAM" in caller.refused("teams_ask", team="backend", question="x", fromTeam="nobody")
        assert "E_ASK_CYCLE" in caller.refused("teams_ask", team="backend", question="x", fromTeam="backend")
        kept = caller.call("teams_notify", toTeam="backend", message="deploys are frozen", fromTeam="mobile")
        assert kept["status"] == "kept"
        reply = _ask(caller, "backend", "/clear is only text here", fromTeam="frontend")
        assert "deploys are frozen" in reply["response"] and "/clear" in reply["response"]
        shown = caller.call("teams_status", team="backend")["teams"][0]
        assert (shown["team"], shown["processes"]) == ("backend", 1)


def test_a_team_in_its_own_project_is_itself(world: World) -> None:
    with Agent(world.holdfast, world.place / "frontend", session="fe") as frontend:
        names = {tool["name"] for tool in frontend.request("tools/list")["tools"]}
        assert {"teams_ask", "teams_send_message", "teams_notify", "teams_status", "teams_session"} <= names
        reply = _ask(frontend, "backend", "who am I?")
        assert reply["conversation"]["fromTeam"] == "frontend"
    with world.caller() as outside:
        assert "teams_ask" not in {tool["name"] for tool in outside.request("tools/list")["tools"]}


def test_an_agent_killed_in_mid_turn_is_asked_again_and_the_caller_told(tmp_path: Path) -> None:
    from tests.agents.scripted_model import later, text

    slow = iter([later(30.0, text("never")), text("at the second try")])
    with ScriptedModel(lambda request: next(slow)) as model:
        world = World(tmp_path, model)
        world.write()
        try:
            with world.caller() as caller:
                sent = caller.call("teams_send_message", toTeam="backend", message="go", waitForResponse=False)
                wait_until(lambda: bool(model.requests), "the turn is under way")
                for process in world.agents("claude"):
                    os.kill(process.pid, signal.SIGKILL)
                done = caller.call("teams_session", operation="wait", askId=sent["askId"], timeout=60_000)
                assert (done["status"], done["response"]) == ("answered", "at the second try")
                assert "asked again" in done["note"]
        finally:
            world.holdfast.close()


def test_twenty_asks_survive_a_kill_of_the_daemon_with_one_outcome_each(world: World) -> None:
    with world.caller() as caller:
        sent = [
            caller.call(
                "teams_send_message",
                toTeam=TEAMS[n % 3],
                message=f"question {n}",
                threadId=f"t{n % 6}",
                waitForResponse=False,
            )["askId"]
            for n in range(20)
        ]
        wait_until(lambda: bool(world.sessions()), "agents are at work")
        working = world.agents()
        world.holdfast.kill_daemon()
        wait_until(lambda: not any(process.is_running() for process in working), "its agents are gone", limit=10)
        outcomes = [
            caller.call("teams_session", operation="wait", askId=ask, timeout=120_000)["status"] for ask in sent
        ]
        assert set(outcomes) <= {"answered", "failed"}
        assert outcomes.count("answered") >= 18
    assert list(world.holdfast.home.rglob("*credentials*")) == []


def test_a_to_b_to_a_with_one_process_ends_in_a_typed_reply(tmp_path: Path) -> None:
    from tests.agents.scripted_model import Request, text, tool_use

    def script(request: Request) -> Any:
        if request.tool_results:
            return text(f"I was told: {request.tool_results[-1].text}")
        here = "backend" if "[Message from team frontend" in json.dumps(request.body) else "frontend"
        other = "frontend" if here == "backend" else "backend"
        return tool_use(
            "mcp__holdfast__teams_ask", {"team": other, "question": f"{here} asks {other}", "timeout": 60_000}
        )

    with ScriptedModel(script) as model:
        world = World(tmp_path, model)
        world.settings["maxProcesses"] = 1
        for team in world.teams.values():
            team["allowedTools"] = ["mcp__holdfast"]
        world.write()
        world.config.mkdir(parents=True)
        (world.config / ".claude.json").write_text(json.dumps(world.holdfast.mcp_config()))
        try:
            with world.caller() as caller:
                reply = caller.call("teams_ask", team="frontend", question="begin", timeout=100_000)
                assert reply["status"] == "answered", reply
                assert "E_ASK_CYCLE" in reply["response"]
        finally:
            world.holdfast.close()
