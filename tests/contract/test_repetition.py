"""A call whose answer was lost is repeated with the same key: it takes effect once, and has the same answer."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contract.conftest import Place
from tests.contract.repetition_cases import CASES, TIMEOUT_MS, at_rest, begun_session, queued, read_first, start_run
from tests.contract.wire_world import Json, Relayed, World, new_world

from holdfast.connections.model import Attempt
from holdfast.store.calls import once
from holdfast.wire.mcp.catalog import Catalog
from holdfast.wire.mcp.tools import Call, Offer, Params, Repetition, Tool

pytestmark = pytest.mark.anyio

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "tools.md"


def _declared(tool: Tool, operation: str) -> Repetition:
    return tool.repetition if isinstance(tool.repetition, Repetition) else tool.repetition[operation.partition(" ")[0]]


# -- the walk ---------------------------------------------------------------------------------------------------------


@pytest.fixture
async def world(place: Place) -> AsyncIterator[World]:
    async with new_world(place) as made:
        yield made


async def test_every_tool_and_operation_is_in_the_walk(sqlite_place: Place) -> None:
    async with new_world(sqlite_place) as world:
        tools = (await world.life()).wire.catalog.tools.values()
        every = {(tool.name, operation) for tool in tools for operation in tool.operations or ("",)}
        assert every == {(tool, operation.partition(" ")[0]) for tool, operation in CASES}


async def test_the_documentation_says_how_a_repetition_of_each_is_answered(sqlite_place: Place) -> None:
    async with new_world(sqlite_place) as world:
        tools = (await world.life()).wire.catalog.tools.values()
    section = DOCUMENTATION.read_text().split("## A call that is repeated")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    told = {
        (name, operation or ""): kind
        for kind, row in zip(Repetition, rows, strict=True)
        for entry in row.split("|")[2].split(";")
        for name, *operations in [re.findall("`([a-z_]+)`", entry)]
        for operation in operations or [None]
    }
    declared = {(tool.name, name): _declared(tool, name) for tool in tools for name in tool.operations or ("",)}
    assert told == declared


@pytest.mark.parametrize(("tool", "operation"), CASES, ids=lambda name: name or "-")
async def test_a_repeated_call_changes_nothing_and_has_the_same_answer(world: World, tool: str, operation: str) -> None:
    key = "the-relay:lost"
    async with world.working_life() as life:
        async with life.relay("the-relay", world.project.path) as caller:
            arguments = await CASES[tool, operation](world, life, caller)
            before = await world.state()
            first = await caller.call(tool, arguments, key)
            if "askId" in first and first["status"] == "answered":
                await at_rest(life, first["askId"])
        after = await world.state()
        if _declared(life.wire.catalog.tools[tool], operation) is not Repetition.IDEMPOTENT:
            assert after != before, "the arguments of this case take no effect"
    if tool == "reconnect_session":
        world.place.shift += 60_000  # longer than a used token is answered without a key
    again = await world.life()
    async with again.relay("the-relay", world.project.path) as caller:
        await caller.use("init", operation="get_state")  # whoever comes over a new link is told a new token once
        kept = await world.state()
        second = await caller.call(tool, arguments, key)
        assert await world.state() == kept
    token = first.get("reconnect_token") or first.get("connection", {}).get("reconnect_token")
    for reply in (first, second):
        reply.pop("connection", None)  # told beside the answer itself
        reply.pop("expires_in_minutes", None)  # of a token: a later state of the same thing
    assert second == first
    if token is not None:
        assert not any(token in row for row in kept["calls"]), "a token is not stored"


# -- what the walk does not show --------------------------------------------------------------------------------------


async def test_a_first_answer_that_was_lost_with_its_token_comes_again_with_one(world: World) -> None:
    begin = {"operation": "start_new", "title": "Mine"}
    life = await world.life()
    async with life.relay("r", world.project.path) as caller:
        lost = await caller.call("init", begin, "r:1")
    life = await world.life()
    async with life.relay("r", world.project.path) as caller:
        told = await caller.call("init", begin, "r:1")
        assert told["session"] == lost["session"]
        after = await caller.use("init", operation="get_state")
        assert "reconnect_token" not in after["connection"], "it is told once"
    async with life.relay("another", world.project.path) as caller:
        connection = {name: told["connection"][name] for name in ("session_id", "reconnect_token")}
        assert (await caller.use("reconnect_session", **connection))["success"]


class Nothing(Params):
    """No parameters."""


async def _phase(world: World) -> str:
    rows = await world.store.read(lambda tx: tx.all("SELECT phase FROM protocol_runs"))
    return str(rows[0]["phase"])


async def _both(first: Relayed, second: Relayed, tool: str, arguments: Json, key: str) -> list[Json]:
    replies = await asyncio.gather(*(relay.call(tool, arguments, key) for relay in (first, second)))
    for reply in replies:
        reply.pop("connection", None)  # told beside the answer itself
    return list(replies)


async def test_a_call_repeated_on_another_daemon_while_the_first_is_under_way_advances_one_phase(world: World) -> None:
    one, two = await world.life(), await world.life()
    async with one.relay("r", world.project.path) as first, two.relay("r", world.project.path) as second:
        await start_run(world, first)
        await read_first(world, first)
        phases = []
        for number in range(2):
            answers = await _both(first, second, "advance_phase", {}, f"r:a{number}")
            assert answers[0] == answers[1]
            assert answers[0]["phase"] == await _phase(world)
            phases.append(answers[0]["phase"])
        assert phases == ["CONTEXT_LOADED", "WORKING"]


async def test_a_repetition_waits_for_the_first_call_of_the_same_daemon(world: World) -> None:
    """Otherwise both would set the same agent or the same command to work."""
    life = await world.life()
    let_go, at_work, most = asyncio.Event(), 0, 0

    async def handle(call: Call, params: Nothing) -> Json:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await let_go.wait()
        at_work -= 1
        return await world.store.write(once(call.key, lambda tx: {"id": tx.new_id()}))

    tool = Tool("slow", "Slow", "Takes its time", Nothing, handle, Repetition.STORED)
    life.wire.catalog = Catalog([Offer(tools=[tool])])
    async with life.relay("r", world.project.path) as first, life.relay("r", world.project.path) as second:
        both = asyncio.create_task(_both(first, second, "slow", {}, "r:1"))
        async with asyncio.timeout(TIMEOUT_MS / 1000):
            while life.wire.in_flight < 2 or not at_work:  # noqa: ASYNC110 - polled
                await asyncio.sleep(0.01)
        let_go.set()
        one, two = (reply["id"] for reply in await both)
    assert (one == two, most) == (True, 1)


async def test_a_call_that_failed_runs_again_when_it_is_repeated(world: World) -> None:
    life = await world.life()
    async with life.relay("r", world.project.path) as caller:
        await start_run(world, caller)
        refused = await caller.answer("advance_phase", {}, "r:advance")
        assert refused["result"]["isError"]
        await read_first(world, caller)
        assert (await caller.call("advance_phase", {}, "r:advance"))["phase"] == "CONTEXT_LOADED"
        assert (await caller.call("advance_phase", {}, "r:advance"))["phase"] == "CONTEXT_LOADED"
        rows = await world.store.read(lambda tx: tx.all("SELECT result FROM calls WHERE tool = 'advance_phase'"))
        assert [json.loads(row["result"])["phase"] for row in rows] == ["CONTEXT_LOADED"]


async def test_nobody_gets_the_result_of_another_caller_by_its_key(world: World) -> None:
    life = await world.life()
    begin = {"operation": "start_new", "title": "Mine alone"}
    async with life.relay("one", world.project.path) as one, life.relay("two", world.project.path) as two:
        mine = await one.call("init", begin, "one:1")
        theirs = await two.call("init", begin, "one:1")
        assert theirs["session"]["id"] != mine["session"]["id"]
        assert (await one.call("init", begin, "one:1"))["session"] == mine["session"]


async def test_a_later_change_by_others_is_not_undone_by_a_repetition(world: World) -> None:
    life = await world.life()
    async with life.relay("one", world.project.path) as one, life.relay("two", world.project.path) as two:
        made = await begun_session(one)
        rename = {"operation": "rename", "sessionId": made, "title": "First"}
        renamed = await one.call("session", rename, "one:rename")
        await two.use("session", operation="rename", sessionId=made, title="Second")
        assert await one.call("session", rename, "one:rename") == renamed
        assert (await two.use("session", operation="get", sessionId=made))["session"]["title"] == "Second"


async def test_a_message_put_back_and_taken_again_stays_with_its_taker_when_that_is_repeated(world: World) -> None:
    life = await world.life()
    async with life.relay("r", world.project.path) as caller:
        (message,) = await queued(caller, "one")
        await caller.use("take_message")
        later = {"id": message, "outcome": "later"}
        put_back = await caller.call("finish_message", later, "r:later")
        assert put_back["status"] == "pending"
        assert (await caller.use("take_message"))["id"] == message
        assert await caller.call("finish_message", later, "r:later") == put_back
        assert (await caller.use("finish_message", id=message, outcome="done"))["status"] == "done"


async def test_a_stop_whose_answer_was_lost_comes_again_before_another_stop(world: World) -> None:
    life = await world.life()
    async with life.relay("r", world.project.path) as caller:
        (work,) = await queued(caller, "work")
        assert (await caller.use("take_message"))["id"] == work
        one, two = await queued(caller, "Stop!", "Stop at once!", priority="stop")
        first = await caller.call("take_message", {}, "r:take")
        assert first["id"] == one
        assert await caller.call("take_message", {}, "r:take") == first, "repeated by the relay"
        assert (await caller.use("take_message"))["id"] == one, "asked again by the agent"
        for message in (one, two, work):
            assert (await caller.use("take_message"))["id"] == message
            await caller.use("finish_message", id=message, outcome="done")
        assert "id" not in await caller.call("take_message", {}, "r:take"), "what is over is not told again"


async def test_a_token_that_was_lost_comes_again_unless_its_connection_ended(world: World) -> None:
    life = await world.life()
    async with life.relay("earlier", world.project.path) as earlier:
        made = (await earlier.use("init", operation="start_new", title="Mine"))["connection"]
    presented = {"session_id": made["session_id"], "reconnect_token": made["reconnect_token"]}
    async with life.relay("r", world.project.path) as caller:
        first = await caller.call("reconnect_session", presented, "r:reconnect")
        world.place.shift += 60_000
        again = await caller.call("reconnect_session", presented, "r:reconnect")
        assert again["reconnect_token"] == first["reconnect_token"]
        used = {**presented, "reconnect_token": again["reconnect_token"]}
        assert (await caller.use("reconnect_session", **used))["success"], "the token is of use"
        await life.app.connections.reconnects.revoke(made["session_id"], Attempt("test"))
        refused = await caller.call("reconnect_session", presented, "r:reconnect")
        assert not refused["success"] and "reconnect_token" not in refused


def _forgetful(repetition: Repetition) -> Tool:
    async def handle(call: Call, params: Nothing) -> Json:
        return {"key": call.key is not None}

    return Tool("forgetful", "Forgetful", "Stores nothing", Nothing, handle, repetition)


@pytest.mark.parametrize("repetition", [Repetition.STORED, Repetition.HANDLE])
async def test_a_tool_that_stores_nothing_under_its_key_is_found_out(
    sqlite_place: Place, repetition: Repetition
) -> None:
    async with new_world(sqlite_place) as world:
        life = await world.life()
        life.wire.catalog = Catalog([Offer(tools=[_forgetful(repetition)])])
        async with life.relay("r", world.project.path) as caller:
            assert "error" in await caller.answer("forgetful", {})


async def test_an_idempotent_tool_has_no_key(sqlite_place: Place) -> None:
    async with new_world(sqlite_place) as world:
        life = await world.life()
        life.wire.catalog = Catalog([Offer(tools=[_forgetful(Repetition.IDEMPOTENT)])])
        async with life.relay("r", world.project.path) as caller:
            assert (await caller.use("forgetful"))["key"] is False
