"""What every kind of agent promises, tried on each with real processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import psutil
import pytest
from tests.agents.agent_world import (
    LINGERING,
    WAIT,
    Life,
    World,
    eventually,
    family,
    gone,
    new_id,
    parent_of,
    play,
    quiet,
    say,
    starting_parent,
    turns_seen,
    world,
)

from holdfast.agents import Lack
from holdfast.agents.errors import AgentBusy, AgentDied, PartMissing, SessionInUse, SessionMissing
from holdfast.agents.registry import runnable
from holdfast.errors import BadInput

KINDS = ["echo", "acp", "claude"]


@pytest.fixture(params=KINDS)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with world(request.param, tmp_path) as made:
        yield made


def test_every_agent_that_can_be_run_is_tried_here() -> None:
    assert set(runnable()) <= set(KINDS)


def run(made: World, scenario: Callable[[], Awaitable[None]]) -> None:
    """Play a scenario; no process is left."""
    before = set(psutil.Process().children(recursive=True))
    play(made, scenario)
    left = [process for process in psutil.Process().children(recursive=True) if process not in before]
    assert left == []


def test_a_conversation_goes_on_within_a_process_and_after_it(made: World) -> None:
    async def scenario() -> None:
        agent, wanted = made.agent(), new_id()
        session = await agent.open(made.spec(), wanted, resume=False)
        name = session.session_id
        assert (name == wanted) is (Lack.GIVEN_IDS not in agent.lacks)
        first, second = await say(session, "one"), await say(session, "two")
        assert (turns_seen(first), turns_seen(second)) == (1, 2)
        assert "two" in second.text
        assert {first.session_id, second.session_id, session.session_id} == {name}
        assert not first.is_error
        await session.close()
        assert (session.alive, session.pid) == (False, None)

        resumed = await agent.open(made.spec(), name, resume=True)
        third = await say(resumed, "three")
        assert (turns_seen(third), third.session_id) == (3, name)
        await resumed.close()
        if Lack.LIST in agent.lacks:
            with pytest.raises(PartMissing):
                await agent.list_sessions(made.spec())
        else:
            assert name in [found.session_id for found in await agent.list_sessions(made.spec())]

    run(made, scenario)


def test_two_sessions_of_one_project_never_leak(made: World) -> None:
    async def scenario() -> None:
        agent = made.agent()
        sessions = [await agent.open(made.spec(), new_id(), resume=False) for _ in range(2)]
        for number in (1, 2):
            turns = await asyncio.gather(*(say(session, f"turn {number}") for session in sessions))
            assert [turns_seen(turn) for turn in turns] == [number, number]
        for session in sessions:
            await session.close()

    run(made, scenario)


def test_an_unknown_session_cannot_be_resumed_and_a_known_one_not_created(made: World) -> None:
    async def scenario() -> None:
        agent, wanted = made.agent(), new_id()
        unknown = "ses_0" if Lack.GIVEN_IDS in agent.lacks else wanted
        with pytest.raises(SessionMissing):
            await agent.open(made.spec(), unknown, resume=True)
        with pytest.raises(PartMissing if Lack.FORK in agent.lacks else SessionMissing):
            await agent.fork(made.spec(), new_id(), "a copy")
        session = await agent.open(made.spec(), wanted, resume=False)
        name = session.session_id
        await say(session, "one")
        with pytest.raises(SessionInUse):
            await agent.open(made.spec(), name, resume=True)
        await session.close()
        if Lack.GIVEN_IDS not in agent.lacks:
            with pytest.raises(SessionInUse):
                await agent.open(made.spec(), name, resume=False)
        await agent.delete_transcript(made.spec(), name)
        with pytest.raises(SessionMissing):
            await agent.open(made.spec(), name, resume=True)

    run(made, scenario)


def test_an_id_that_is_no_uuid_and_a_project_that_is_no_directory_are_refused(made: World) -> None:
    async def scenario() -> None:
        with pytest.raises(BadInput, match="session_id"):
            agent = made.agent()
            await agent.open(made.spec(), "../../etc/passwd", resume=Lack.GIVEN_IDS in agent.lacks)
        spec = made.spec()
        made.project.rmdir()
        with pytest.raises(BadInput, match="project"):
            await made.agent().open(spec, new_id(), resume=False)

    run(made, scenario)


def test_an_interrupted_turn_ends_at_once_and_the_session_stays_usable(made: World) -> None:
    async def scenario() -> None:
        session = await made.agent().open(made.spec(), new_id(), resume=False)
        await session.interrupt()  # nothing runs, nothing happens
        life = Life()
        turn = asyncio.create_task(session.send("sleep 600", life))
        await life.seen()
        with pytest.raises(AgentBusy):
            await session.send("too early", quiet)
        await session.interrupt()
        ended = await asyncio.wait_for(turn, WAIT)
        assert ended.interrupted
        assert ended.is_error
        assert "after" in (await say(session, "after")).text
        await session.close()

    run(made, scenario)


def test_a_caller_that_gives_up_does_not_spoil_the_session(made: World) -> None:
    async def scenario() -> None:
        session = await made.agent().open(made.spec(), new_id(), resume=False)
        life = Life()
        turn = asyncio.create_task(session.send("sleep 600", life))
        await life.seen()
        turn.cancel()
        with pytest.raises(AgentBusy):
            await session.send("too early", quiet)
        await session.interrupt()
        async with asyncio.timeout(WAIT):
            while True:
                try:
                    answer = await session.send("after", quiet)
                    break
                except AgentBusy:
                    await asyncio.sleep(0.02)
        assert "after" in answer.text
        await session.close()

    run(made, scenario)


def test_a_killed_agent_fails_its_turn_at_once(made: World) -> None:
    async def scenario() -> None:
        agent = made.agent()
        session = await agent.open(made.spec(), new_id(), resume=False)
        name = session.session_id
        await say(session, "one")
        life = Life()
        turn = asyncio.create_task(session.send("sleep 600", life))
        await life.seen()
        assert session.pid is not None
        members = family(session.pid)
        os.kill(session.pid, signal.SIGKILL)
        with pytest.raises(AgentDied):
            await asyncio.wait_for(turn, WAIT)
        assert eventually(lambda: gone(members))
        assert not session.alive
        with pytest.raises(AgentDied):
            await session.send("still there?", quiet)
        await session.close()
        await session.close()

        resumed = await agent.open(made.spec(), name, resume=True)
        assert turns_seen(await say(resumed, "two")) >= 2
        await resumed.close()

    run(made, scenario)


def test_an_agent_whose_guard_was_killed_does_not_live_on(made: World) -> None:
    async def scenario() -> None:
        session = await made.agent().open(made.spec(), new_id(), resume=False)
        life = Life()
        turn = asyncio.create_task(session.send("sleep 600", life))
        await life.seen()
        assert session.pid is not None
        members = family(session.pid)
        members[0].kill()
        with pytest.raises(AgentDied):
            await asyncio.wait_for(turn, WAIT)
        await session.close()
        assert eventually(lambda: gone(members))

    run(made, scenario)


COMMANDS = ["/clear", "  /compact now", "/exit\nand more", "@/etc/passwd what is that?", "/help", "!ls", "#note"]


def test_a_text_that_looks_like_a_command_arrives_as_text(made: World) -> None:
    async def scenario() -> None:
        session = await made.agent().open(made.spec(), new_id(), resume=False)
        for number, words in enumerate(COMMANDS, 1):
            turn = await say(session, words)
            assert turns_seen(turn) == number
            assert words.strip() in turn.text
        if made.model is not None:
            assert "root:" not in made.model.requests[-1].text
        await session.close()

    run(made, scenario)


def test_a_fork_is_the_conversation_of_that_moment_and_both_go_their_own_way(made: World) -> None:
    async def scenario() -> None:
        agent = made.agent()
        original = await agent.open(made.spec(), new_id(), resume=False)
        name = original.session_id
        await say(original, "one")
        if Lack.FORK in agent.lacks:
            with pytest.raises(PartMissing):
                await agent.fork(made.spec(), name, "a copy")
            await original.close()
            return
        copy = await agent.fork(made.spec(), name, "a copy")
        assert turns_seen(await say(original, "two")) == 2
        await original.close()
        await agent.delete_transcript(made.spec(), name)
        fork = await agent.open(made.spec(), copy, resume=True)
        turn = await say(fork, "on the fork")
        assert (turns_seen(turn), turn.session_id) == (2, copy)
        await fork.close()
        again = await agent.open(made.spec(), copy, resume=True)
        assert turns_seen(await say(again, "three")) == 3
        await again.close()

    run(made, scenario)


def test_what_was_said_to_an_agent_is_listed_in_order(made: World) -> None:
    async def scenario() -> None:
        agent = made.agent()
        session = await agent.open(made.spec(), new_id(), resume=False)
        await say(session, "one")
        await say(session, "two")
        await session.close()
        if Lack.LIST in agent.lacks:
            with pytest.raises(PartMissing):
                await agent.headings(made.spec(), session.session_id)
        else:
            assert await agent.headings(made.spec(), session.session_id) == ["one", "two"]

    run(made, scenario)


def test_an_agents_error_is_told_as_one(made: World) -> None:
    async def scenario() -> None:
        session = await made.agent().open(made.spec(), new_id(), resume=False)
        turn = await say(session, "fail")
        assert turn.is_error
        assert "told to fail" in turn.text
        assert not (await say(session, "again")).is_error
        await session.close()

    run(made, scenario)


def test_closing_in_mid_turn_leaves_no_process(made: World) -> None:
    async def scenario() -> None:
        session = await made.agent().open(made.spec(), new_id(), resume=False)
        life = Life()
        turn = asyncio.create_task(session.send("sleep 600", life))
        await life.seen()
        assert session.pid is not None
        members = family(session.pid)
        await session.close()
        with pytest.raises(AgentDied):
            await turn
        assert gone(members)
        assert not list((made.place / "data" / "locks").iterdir())

    run(made, scenario)


def test_nothing_of_an_agent_outlives_a_parent_that_was_killed(made: World) -> None:
    words = ["one", f"run {LINGERING}" if made.kind == "claude" else "sleep 600"]
    parent = parent_of(made, new_id(), words)
    expected = 4 if made.kind == "claude" else 2  # guard, agent, the tool's shell and its command
    assert eventually(lambda: len(family(parent.agent_pid)) >= expected)
    members = family(parent.agent_pid)
    parent.kill()
    assert eventually(lambda: gone(members), 10.0)

    async def scenario() -> None:
        session = await made.agent().open(made.spec(), parent.session_id, resume=True)
        assert turns_seen(await say(session, "again")) >= 2
        await session.close()

    run(made, scenario)


def test_a_parent_that_was_killed_while_its_agent_started_leaves_nothing(made: World) -> None:
    name = new_id()
    with starting_parent(made, name, ["one"]) as parent:
        process = psutil.Process(parent.pid)
        assert eventually(lambda: bool(process.children()))
        members = process.children(recursive=True)
        parent.kill()
    assert eventually(lambda: gone(members), 10.0)

    async def scenario() -> None:
        session = await made.agent().open(made.spec(), name, resume=False)
        assert turns_seen(await say(session, "one")) == 1
        await session.close()

    run(made, scenario)


PLACES = {"strange": "a.b/.c/_d_e/f  g/größe-日本-é", "long": "/".join(["d" * 60] * 4)}


@pytest.mark.parametrize("name", PLACES)
def test_a_project_may_be_called_anything(made: World, name: str) -> None:
    async def scenario() -> None:
        project = made.place / "p" / PLACES[name]
        await _twice(made, project)

    run(made, scenario)


def test_a_project_may_be_a_symbolic_link(made: World) -> None:
    async def scenario() -> None:
        real = made.place / "real"
        real.mkdir()
        link = made.place / "link"
        link.symlink_to(real)
        await _twice(made, link)

    run(made, scenario)


async def _twice(made: World, project: Path) -> None:
    agent, name = made.agent(), new_id()
    for number, resume in ((1, False), (2, True)):
        session = await agent.open(made.spec(project=project), name, resume=resume)
        name = session.session_id
        assert turns_seen(await say(session, "here")) == number
        await session.close()


def test_what_an_agent_cannot_do_it_says(made: World) -> None:
    async def scenario() -> None:
        agent = made.agent()
        session = await agent.open(made.spec(), new_id(), resume=False)
        await say(session, "one")
        if Lack.COMPACT in agent.lacks:
            with pytest.raises(PartMissing):
                await session.compact()
        else:
            await asyncio.wait_for(session.compact(), WAIT)
        assert session.alive
        await session.close()

    run(made, scenario)


def test_an_agent_that_does_not_tell_its_cost_has_none_instead_of_zero(tmp_path: Path) -> None:
    async def scenario() -> None:
        session = await acp.agent().open(acp.spec(), new_id(), resume=False)
        assert (await say(session, "one")).cost_usd is None
        await session.close()

    with world("acp", tmp_path) as acp:
        run(acp, scenario)


def test_servers_that_an_agent_is_to_use_reach_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        servers = {"holdfast": {"command": "holdfast", "args": ["mcp"]}}
        session = await acp.agent().open(acp.spec(mcp_servers=servers), new_id(), resume=False)
        told = json.loads((acp.place / "acp" / session.session_id).read_text().splitlines()[0])
        assert told == {"mcpServers": [{"name": "holdfast", "command": "holdfast", "args": ["mcp"]}]}
        await session.close()

    with world("acp", tmp_path) as acp:
        run(acp, scenario)
