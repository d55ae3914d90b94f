"""The real Claude Code under guard: what only it has, permissions, settings, its own program and what it starts."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.agents.agent_world import LINGERING, WAIT, Life, World, eventually, family, gone, new_id, play, say, world
from tests.agents.scripted_model import Reply, Request, text, tool_use

from holdfast.agents.claude import run
from holdfast.agents.claude.open_elsewhere import opened_by
from holdfast.agents.claude.run import ClaudeAgent, config_directory
from holdfast.agents.errors import AgentUnavailable, CompactionFailed, SessionInUse
from holdfast.errors import BadInput


def test_it_works_as_claude_code_with_the_projects_own_settings(made: World) -> None:
    async def scenario() -> None:
        spec = made.spec(
            append_system_prompt="You are the heron.",
            allowed_tools=("Bash",),
            disallowed_tools=("Write",),
            project_settings=True,
        )
        (made.project / "CLAUDE.md").write_text("The tide is at nine.")
        session = await made.agent().open(spec, new_id(), resume=False)
        turn = await say(session, "run echo managed=$HOLDFAST_MANAGED lock=$HOLDFAST_SESSION_LOCK.")
        assert "managed=1 lock=." in turn.text
        assert made.model is not None
        asked = made.model.requests[0]
        assert "Claude Code" in asked.system
        assert "You are the heron." in asked.system
        assert "The tide is at nine." in asked.text
        assert "Write" not in asked.tools
        assert (turn.num_turns, turn.context_window is not None, turn.output_tokens > 0) == (2, True, True)
        await session.close()

    play(made, scenario)


def test_a_process_that_is_just_ending_does_not_keep_a_session_in_use(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = new_id()
    waits = [sys.executable, "-c", "import signal; signal.pause()", "--resume", name]
    seen: list[int | None] = []

    def looked(session_id: str, config: Path) -> int | None:
        seen.append(opened_by(session_id, config))
        other.kill()
        other.wait()
        return seen[-1]

    async def scenario() -> None:
        session = await made.agent().open(made.spec(), name, resume=False)
        assert seen == [other.pid, None]
        await session.close()

    monkeypatch.setattr(run, "opened_by", looked)
    with subprocess.Popen(waits) as other:
        play(made, scenario)


def test_what_a_turn_costs_is_counted_once_also_after_a_resume(made: World) -> None:
    async def scenario() -> None:
        agent, name = made.agent(), new_id()
        costs = []
        for resume in (False, True):
            session = await agent.open(made.spec(), name, resume=resume)
            costs += [(await say(session, "go on")).cost_usd for _ in range(2)]
            await session.close()
        assert all(cost is not None and 0 < cost < 1.5 * (costs[0] or 0.0) for cost in costs), costs

    play(made, scenario)


def test_a_tool_that_no_rule_allows_waits_for_permission(made: World) -> None:
    decisions = {"touch yes": True, "touch no": False, "touch undecided": None}
    asked: list[tuple[str, str]] = []

    async def permission(tool: str, arguments: dict[str, Any]) -> bool | None:
        asked.append((tool, arguments["command"]))
        return decisions[arguments["command"]]

    async def scenario() -> None:
        session = await made.agent().open(made.spec(permission=permission), new_id(), resume=False)
        for command in decisions:
            await say(session, f"run {command}")
        await session.close()
        assert asked == [("Bash", command) for command in decisions]
        assert [path.name for path in made.project.iterdir()] == ["yes"]

    play(made, scenario)


def test_a_compaction_tells_the_tokens_before_and_after(made: World) -> None:
    async def scenario() -> None:
        session = await made.agent().open(made.spec(), new_id(), resume=False)
        with pytest.raises(CompactionFailed):
            await session.compact()
        await say(session, "one")
        await say(session, "two")
        done = await session.compact()
        assert done.pre_tokens is not None
        assert done.post_tokens is not None
        assert done.pre_tokens > done.post_tokens
        assert "three" in (await say(session, "three")).text
        await session.close()

    play(made, scenario)


@pytest.mark.parametrize("background", [True, False])
def test_closing_ends_the_commands_that_its_tools_left_running(tmp_path: Path, background: bool) -> None:
    def script(request: Request) -> Reply:
        if request.tool_results:
            return text("started")
        arguments = {"command": LINGERING, "description": "linger", "run_in_background": background}
        return tool_use("Bash", arguments)

    async def scenario() -> None:
        session = await busy.agent().open(busy.spec(skip_permissions=True), new_id(), resume=False)
        life = Life()
        turn = asyncio.create_task(session.send("start", life))
        await life.seen()
        assert session.pid is not None
        pid = session.pid
        assert await asyncio.to_thread(eventually, lambda: len(family(pid)) >= 4)
        if background:
            assert (await asyncio.wait_for(turn, WAIT)).text == "started"
        members = family(pid)
        await session.close()
        assert gone(members)
        await asyncio.gather(turn, return_exceptions=True)

    with world("claude", tmp_path, script) as busy:
        play(busy, scenario)


def test_a_session_that_somebody_has_open_by_hand_is_left_alone(made: World) -> None:
    async def scenario() -> None:
        agent, name = made.agent(), new_id()
        session = await agent.open(made.spec(), name, resume=False)
        await say(session, "one")
        await session.close()
        waiting = [sys.executable, "-c", "import sys; sys.stdin.read()", "--resume", name]
        with subprocess.Popen(waiting, stdin=subprocess.PIPE) as by_hand:
            with pytest.raises(SessionInUse, match=str(by_hand.pid)):
                await agent.open(made.spec(), name, resume=True)
            by_hand.communicate()
        await (await agent.open(made.spec(), name, resume=True)).close()

    play(made, scenario)


OLD_CLAUDE = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    told = {"subtype": "success", "request_id": asked["request_id"], "response": {"claude_code_version": "2.1.197"}}
    print(json.dumps({"type": "control_response", "response": told}), flush=True)
"""


def test_the_users_own_claude_is_preferred_and_refused_when_it_is_too_old(made: World) -> None:
    async def scenario() -> None:
        own = made.place / "bin" / "claude"
        own.parent.mkdir()
        own.write_text(f"#!{sys.executable}\n{OLD_CLAUDE}")
        own.chmod(0o755)
        agent = ClaudeAgent(made.place / "data", made.transcripts)
        spec = made.spec(env={"PATH": f"{own.parent}{os.pathsep}{os.environ['PATH']}"})
        with pytest.raises(AgentUnavailable, match=r"2\.1\.197.*claude update"):
            await agent.open(spec, new_id(), resume=False)
        own.write_text("#!/bin/sh\necho out of order >&2\nexit 3\n")
        with pytest.raises(AgentUnavailable, match="out of order"):
            await agent.open(spec, new_id(), resume=False)

    play(made, scenario)


def test_the_sessions_of_a_project_are_found_on_disk(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        agent, names = made.agent(), [new_id(), new_id()]
        for name in names:
            session = await agent.open(made.spec(), name, resume=False)
            await say(session, f"I am {name}")
            await session.close()
        for ours in (False, True):  # the agent's configuration directory is another one, or this process's own
            if ours:
                monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(made.config))
            found = await agent.list_sessions(made.spec())
            assert [each.session_id for each in found] == names[::-1]
            assert [each.first_prompt for each in found] == [f"I am {name}" for name in names[::-1]]
            assert {each.cwd for each in found} == {str(made.project)}
        assert await agent.list_sessions(made.spec(project=made.place / "elsewhere")) == []

    play(made, scenario)


def test_an_environment_in_which_nothing_would_be_mirrored_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert config_directory({}) == tmp_path / ".claude"
    assert config_directory({"HOME": str(tmp_path)}) == tmp_path / ".claude"
    assert config_directory({"CLAUDE_CONFIG_DIR": "/x"}) == Path("/x")
    with pytest.raises(BadInput, match=r"env\.HOME.*CLAUDE_CONFIG_DIR"):
        config_directory({"HOME": "/elsewhere"})
    for relative in ("", "there"):
        with pytest.raises(BadInput, match=r"env\.CLAUDE_CONFIG_DIR"):
            config_directory({"CLAUDE_CONFIG_DIR": relative})
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/y")
    assert config_directory({"HOME": "/elsewhere"}) == Path("/y")
