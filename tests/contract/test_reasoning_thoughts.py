"""Thoughts are numbered by the server, recorded once, and never refused or overwritten because of their number."""

from __future__ import annotations

import asyncio

import pytest
from tests.contract.conftest import Place
from tests.contract.reasoning_world import ELSEWHERE, agent, call, living

from holdfast.errors import BadInput
from holdfast.reasoning.hash_chain_check import chain_check
from holdfast.reasoning.model import Draft
from holdfast.store.verify import Problem

pytestmark = pytest.mark.anyio


async def test_the_first_thought_names_its_session_and_the_reply_stays_small(place: Place) -> None:
    async with living(place) as world:
        reply = await world.think(agent("a"), "\n  First line of it\nand the rest", requested_number=1, total=3)
        assert reply == {
            "sessionId": reply["sessionId"],
            "title": "First line of it",
            "thoughtNumber": 1,
            "totalThoughts": 3,
            "thoughtCount": 1,
            "nextThoughtNeeded": True,
            "status": "created",
        }


async def test_a_stale_number_is_kept_as_requested_and_nothing_is_overwritten(place: Place) -> None:
    async with living(place) as world:
        await world.think(agent("a"), "one", requested_number=1, total=2)
        await world.think(agent("a"), "two", requested_number=2, total=2)
        stale = await world.think(agent("a"), "also two", requested_number=2, total=2)
        assert (stale["thoughtNumber"], stale["requestedNumber"], stale["renumbered"]) == (3, 2, True)
        assert stale["totalThoughts"] == 3
        passage = await world.reasoning.browser.passage(agent("a"), None, 1, 3)
        assert [entry["thought"] for entry in passage["thoughts"]] == ["one", "two", "also two"]
        assert passage["thoughts"][2]["requestedNumber"] == 2


async def test_the_same_thought_sent_again_right_after_is_recorded_once(place: Place) -> None:
    async with living(place) as world:
        await world.think(agent("a"), "same", requested_number=1)
        again = await world.think(agent("a"), "same", requested_number=1)
        assert (again["duplicate"], again["thoughtNumber"], again["thoughtCount"]) == (True, 1, 1)
        assert "duplicate" not in await world.think(agent("a"), "same", requested_number=2)
        assert "duplicate" not in await world.think(agent("a"), "same")
        assert (await world.think(agent("a"), "same"))["duplicate"] is True
        branched = await world.think(agent("a"), "same", branch_id="b", branch_from=1)
        assert (branched["thoughtNumber"], "duplicate" in branched) == (4, False)


async def test_a_repeated_call_gets_the_first_ones_reply_and_has_no_second_effect(place: Place) -> None:
    async with living(place) as world:
        first = await world.think(agent("a"), "once", key=call("k1", thought="once"))
        await world.think(agent("a"), "in between", key=call("k2", thought="in between"))
        assert await world.think(agent("a"), "once", key=call("k1", thought="once")) == first
        assert len(await world.rows("SELECT number FROM thoughts")) == 2


async def test_a_branch_needs_its_start_once_and_keeps_it(place: Place) -> None:
    async with living(place) as world:
        for number in range(1, 4):
            await world.think(agent("a"), f"step {number}")
        with pytest.raises(BadInput, match=r"branchFromThought: is missing.*valid range is 1-3"):
            await world.think(agent("a"), "alt", branch_id="alt")
        with pytest.raises(BadInput, match="branchFromThought: 999 does not exist; valid range is 1-3"):
            await world.think(agent("a"), "alt", branch_id="alt", branch_from=999)
        begun = await world.think(agent("a"), "alt", branch_id="alt", branch_from=2)
        assert (begun["thoughtNumber"], begun["branchId"]) == (4, "alt")
        assert (await world.think(agent("a"), "alt on", branch_id="alt"))["thoughtNumber"] == 5
        with pytest.raises(BadInput, match="leaves from thought 2"):
            await world.think(agent("a"), "alt off", branch_id="alt", branch_from=3)
        loaded = await world.reasoning.load_context(agent("a"))
        assert loaded["branches"] == [{"branchId": "alt", "fromThought": 2, "thoughtCount": 2}]
        assert loaded["session"]["branchCount"] == 1
        assert loaded["thoughts"][-1]["branchFromThought"] == 2


async def test_a_revision_names_a_thought_that_exists(place: Place) -> None:
    async with living(place) as world:
        with pytest.raises(BadInput, match="revisesThought: 1 does not exist; the session has no thought yet"):
            await world.think(agent("a"), "too early", revises=1)
        assert await world.rows("SELECT id FROM sessions") == []
        await world.think(agent("a"), "one")
        with pytest.raises(BadInput, match="revisesThought: 2 does not exist; valid range is 1-1"):
            await world.think(agent("a"), "wrong", revises=2)
        await world.think(agent("a"), "better", revises=1)
        assert await world.rows("SELECT is_revision, revises FROM thoughts WHERE number = 2") == [
            {"is_revision": 1, "revises": 1}
        ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"content": " \n"}, "thought: is empty"),
        ({"content": "a\x00b"}, "thought: holds a NUL character at position 1"),
        ({"content": "a\ud800"}, "thought: holds half of a surrogate pair at position 1"),
        ({"content": "x" * (1024 * 1024 + 1)}, "thought: has 1048577 bytes; the limit is 1048576"),
        ({"content": "ü" * (512 * 1024 + 1)}, "thought: has 1048578 bytes"),
        ({"content": "x", "requested_number": 0}, "thoughtNumber: is 0; it must be 1 to 1000000000"),
        ({"content": "x", "total": 1_000_000_001}, "totalThoughts: is 1000000001"),
        ({"content": "x", "branch_id": "../up", "branch_from": 1}, "branchId: must be 1 to 64 of"),
        ({"content": "x", "branch_id": "b" * 65, "branch_from": 1}, "branchId: must be 1 to 64 of"),
        ({"content": "x", "branch_id": "b\n", "branch_from": 1}, "branchId: must be 1 to 64 of"),
    ],
)
async def test_bad_input_is_refused_by_name_and_nothing_is_stored(
    sqlite_place: Place, fields: dict[str, object], message: str
) -> None:
    async with living(sqlite_place) as world:
        with pytest.raises(BadInput, match=message):
            await world.reasoning.think(agent("a"), Draft(next_needed=True, **fields))  # type: ignore[arg-type]
        with pytest.raises(BadInput, match="sessionId: must be"):
            await world.think(agent("a"), "x", "../etc")
        assert await world.rows("SELECT id FROM sessions") == []


async def test_a_thought_of_a_whole_mebibyte_is_kept_to_the_last_byte(place: Place) -> None:
    async with living(place) as world:
        text = "wörter " * ((1024 * 1024) // 8)
        made = await world.think(agent("a"), text)
        assert (await world.reasoning.browser.thought(agent("a"), made["sessionId"], 1)).content == text
        assert await world.store.read(lambda tx: list(chain_check(tx))) == []


async def test_twenty_thoughts_at_once_get_the_numbers_one_to_twenty(place: Place) -> None:
    async with living(place) as world:
        made = (await world.reasoning.start_new(agent("a")))["session"]["id"]
        replies = await asyncio.gather(*(world.think(agent(f"a{n % 4}"), f"thought {n}", made) for n in range(20)))
        assert sorted(reply["thoughtNumber"] for reply in replies) == list(range(1, 21))
        assert await world.store.read(lambda tx: list(chain_check(tx))) == []


async def test_the_first_thoughts_of_one_caller_sent_at_once_share_one_session(place: Place) -> None:
    async with living(place) as world:
        replies = await asyncio.gather(*(world.think(agent("a"), f"thought {n}") for n in range(8)))
        assert len({reply["sessionId"] for reply in replies}) == 1


async def test_agents_that_arrive_at_once_get_a_session_each(place: Place) -> None:
    async with living(place) as world:
        replies = await asyncio.gather(*(world.think(agent(f"a{n}"), f"thought {n}") for n in range(6)))
        assert len({reply["sessionId"] for reply in replies}) == 6


async def test_events_tell_what_happened_but_never_what_was_thought(place: Place) -> None:
    async with living(place) as world:
        made = await world.think(agent("a"), "secret words")
        await world.think(agent("a"), "secret branch", branch_id="alt", branch_from=1)
        assert await world.kinds(made["sessionId"]) == [
            "reasoning.session_created",
            "reasoning.thought_added",
            "reasoning.thought_added",
        ]
        events = await world.rows("SELECT kind, data FROM events ORDER BY seq")
        assert events[-1]["data"] == '{"number":2,"branch":"alt"}'
        assert not [event for event in events if "secret" in event["data"]]


async def test_a_damaged_session_goes_on_after_its_highest_number(place: Place) -> None:
    async with living(place) as world:
        for number in range(1, 5):
            made = await world.think(agent("a"), f"step {number}")
        await world.run("DELETE FROM thoughts WHERE number = 2")
        await world.run("UPDATE sessions SET damage = 'thought 2 was lost', thought_count = 3")
        assert (await world.think(agent("a"), "on"))["thoughtNumber"] == 5
        loaded = await world.reasoning.load_context(agent("a"))
        assert loaded["nextThoughtNumber"] == 6
        assert loaded["session"]["damage"] == "thought 2 was lost"
        problems = await world.store.read(lambda tx: list(chain_check(tx)))
        assert problems == [Problem(f"session {made['sessionId']}", "thought 2 was lost", known=True)]


async def test_start_new_keeps_title_tags_and_domain_and_refuses_what_is_over_the_limits(place: Place) -> None:
    async with living(place) as world:
        made = await world.reasoning.start_new(agent("a"), "Größe", ["x", "y", "x"], "physics")
        assert (made["session"]["title"], made["session"]["tags"]) == ("Größe", ["x", "y"])
        assert (made["session"]["domain"], made["nextThoughtNumber"]) == ("physics", 1)
        assert (await world.think(agent("a"), "in it"))["sessionId"] == made["session"]["id"]
        with pytest.raises(BadInput, match="title: has 501 characters; the limit is 500"):
            await world.reasoning.start_new(agent("a"), "t" * 501)
        with pytest.raises(BadInput, match="tags: holds 51 tags; the limit is 50"):
            await world.reasoning.start_new(agent("a"), tags=[str(n) for n in range(51)])
        with pytest.raises(BadInput, match=r"tags\[1\]: has 101 characters"):
            await world.reasoning.start_new(agent("a"), tags=["ok", "x" * 101])
        with pytest.raises(BadInput, match=r"tags\[0\]: is empty"):
            await world.reasoning.start_new(agent("a"), tags=[""])
        assert "others" not in await world.reasoning.start_new(agent("b", ELSEWHERE))
