"""What is paused is not recorded, what is old is archived, what is forgotten is gone, and what changed is noticed."""

from __future__ import annotations

import pytest
from tests.contract.conftest import Place
from tests.contract.reasoning_world import DAY, ELSEWHERE, PROJECT, WORKTREE, World, agent, call, living

from holdfast.errors import NotFound
from holdfast.reasoning.hash_chain_check import chain_check
from holdfast.reasoning.queries import retention as upkeep_queries
from holdfast.reasoning.results import Forgotten
from holdfast.store.verify import verify

pytestmark = pytest.mark.anyio


async def problems(world: World) -> list[str]:
    """What a check of the hash chains finds."""
    return [problem.text for problem in await world.store.read(lambda tx: list(chain_check(tx)))]


async def test_nothing_is_recorded_for_a_paused_project_until_it_is_resumed(place: Place) -> None:
    async with living(place) as world:
        elsewhere = (await world.think(agent("e", ELSEWHERE), "free"))["sessionId"]
        await world.reasoning.pause(PROJECT)
        for caller in (agent("a"), agent("w", WORKTREE)):
            reply = await world.think(caller, "unheard")
            assert (reply["recorded"], reply["paused"]) == (False, True)
            assert "holdfast resume-recording" in reply["message"]
        assert (await world.think(agent("a"), "unheard", elsewhere))["paused"] is True
        assert (await world.reasoning.start_new(agent("a"), "unheard"))["success"] is False
        assert (await world.reasoning.get_state(agent("a")))["recording"] is False
        assert len(await world.rows("SELECT number FROM thoughts")) == 1
        assert (await world.think(agent("e", ELSEWHERE), "still free"))["thoughtNumber"] == 2
        await world.reasoning.unpause(PROJECT)
        assert (await world.think(agent("a"), "heard"))["thoughtNumber"] == 1
        assert (await world.reasoning.get_state(agent("w", WORKTREE)))["recording"] is True


async def test_a_session_of_a_paused_project_takes_no_thought_from_elsewhere(place: Place) -> None:
    async with living(place) as world:
        made = (await world.think(agent("a"), "before"))["sessionId"]
        await world.reasoning.pause(PROJECT)
        assert (await world.think(agent("e", ELSEWHERE), "across", made))["paused"] is True


async def test_untouched_sessions_archive_themselves_and_pinned_ones_stay(place: Place) -> None:
    async with living(place) as world:
        old = (await world.think(agent("a"), "old"))["sessionId"]
        pinned = (await world.reasoning.start_new(agent("a"), "pinned"))["session"]["id"]
        await world.reasoning.browser.pin(agent("a"), pinned)
        await world.later(89 * DAY)
        recent = (await world.reasoning.start_new(agent("b"), "recent"))["session"]["id"]
        assert (await world.reasoning.sweep()).archived == 0
        await world.later(2 * DAY)
        assert (await world.reasoning.sweep()).archived == 1
        states = {row["id"]: row["status"] for row in await world.rows("SELECT id, status FROM sessions")}
        assert states == {old: "archived", pinned: "active", recent: "active"}
        await world.reasoning.browser.restore(old)
        assert (await world.reasoning.sweep()).archived == 0


async def test_a_deleted_session_is_gone_after_thirty_days(place: Place) -> None:
    async with living(place) as world:
        made = (await world.think(agent("a"), "short-lived", key=call("k")))["sessionId"]
        await world.reasoning.browser.delete(made, made)
        await world.later(30 * DAY - 60_000)
        assert (await world.reasoning.sweep()).purged == 0
        assert (await world.reasoning.browser.restore(made))["success"] is True
        await world.reasoning.browser.delete(made, made)
        await world.later(30 * DAY + 60_000)
        swept = await world.reasoning.sweep()
        assert swept.purged == 1
        assert await world.rows("SELECT number FROM thoughts") == []
        assert await world.rows("SELECT call_key FROM calls") == []


async def test_a_forgotten_session_leaves_no_word_anywhere(place: Place) -> None:
    async with living(place) as world:
        kept = (await world.think(agent("b", ELSEWHERE), "kept"))["sessionId"]
        made = (await world.think(agent("a"), "hush-hush", key=call("k1")))["sessionId"]
        await world.think(agent("a"), "more", branch_id="alt", branch_from=1, key=call("k2"))
        await world.reasoning.browser.link(agent("a"), made, kept)
        assert await world.reasoning.forget_session(made) == Forgotten(1, 2)
        for table in ("thoughts", "branches"):
            assert await world.rows(f"SELECT 1 AS found FROM {table} WHERE session_id = :id", id=made) == []
        for table in ("calls", "session_links"):
            assert await world.rows(f"SELECT * FROM {table}") == []
        events = await world.rows("SELECT kind, subject, data FROM events")
        # The neighbour's own events name the forgotten session at most by its id, never by a word of it.
        assert not [event for event in events if "hush" in event["data"] or event["subject"] == made]
        assert events[-1] == {
            "kind": "reasoning.forgotten",
            "subject": "session",
            "data": '{"sessions":1,"thoughts":2}',
        }
        assert (await world.reasoning.browser.search(None, "hush"))["results"] == []
        with pytest.raises(NotFound):
            await world.reasoning.forget_session(made)
        report = await verify(world.store, {"sessions": chain_check})
        assert report.ok, report.lines()
        assert (await world.think(agent("a"), "afresh"))["status"] == "created"


async def test_forgetting_a_project_takes_its_sessions_under_every_path_and_no_others(place: Place) -> None:
    async with living(place) as world:
        await world.think(agent("a"), "here")
        await world.reasoning.start_new(agent("w", WORKTREE), "worktree")
        kept = (await world.think(agent("e", ELSEWHERE), "kept"))["sessionId"]
        forgotten = await world.reasoning.forget_project(PROJECT)
        assert (forgotten.sessions, forgotten.thoughts) == (2, 1)
        assert await world.rows("SELECT id FROM sessions") == [{"id": kept}]
        assert await world.rows("SELECT root_uri FROM projects") == [{"root_uri": ELSEWHERE.uri}]


async def test_large_sessions_and_many_are_removed_and_archived_in_small_steps(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_queries, "ROWS_AT_ONCE", 2)
    monkeypatch.setattr(upkeep_queries, "AT_ONCE", 2)
    async with living(place) as world:
        for number in range(5):
            await world.reasoning.start_new(agent("a"), f"session {number}")
            for step in range(5):
                await world.think(agent("a"), f"step {step}")
        await world.later(91 * DAY)
        assert (await world.reasoning.sweep()).archived == 5
        forgotten = await world.reasoning.forget_project(PROJECT)
        assert (forgotten.sessions, forgotten.thoughts) == (5, 25)
        assert await world.rows("SELECT number FROM thoughts") == []
        assert (await verify(world.store, {"sessions": chain_check})).ok


async def test_an_interrupted_removal_is_out_of_sight_and_finished_by_the_next_sweep(place: Place) -> None:
    async with living(place) as world:
        made = (await world.think(agent("a"), "half gone"))["sessionId"]
        await world.store.write(lambda tx: upkeep_queries.condemn(tx, made))
        await world.store.write(lambda tx: upkeep_queries.remove_some(tx, made))
        with pytest.raises(NotFound):
            await world.reasoning.browser.outline(agent("a"), made)
        assert (await verify(world.store, {"sessions": chain_check})).ok
        assert (await world.reasoning.sweep()).purged == 1
        assert await world.rows("SELECT id FROM sessions") == []


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        ("UPDATE thoughts SET content = 'changed' WHERE number = 2", "thought 2 was changed"),
        ("UPDATE thoughts SET revises = 1 WHERE number = 2", "thought 2 was changed"),
        ("UPDATE thoughts SET created_at = created_at + 1 WHERE number = 3", "thought 3 was changed"),
        ("DELETE FROM thoughts WHERE number = 2", "thought 2 is missing"),
        ("DELETE FROM thoughts WHERE number > 2", "thoughts 3-4 are missing"),
        ("DELETE FROM thoughts", "thoughts 1-4 are missing"),
        ("UPDATE sessions SET thought_count = 3", "holds 4 thoughts, but 3 were counted"),
        ("UPDATE sessions SET head_hash = 'x'", "the newest thought is not the one that was recorded last"),
    ],
)
async def test_a_changed_or_missing_thought_is_found_by_name(place: Place, damage: str, found: str) -> None:
    async with living(place) as world:
        for number in range(1, 5):
            await world.think(agent("a"), f"step {number}")
        assert await problems(world) == []
        await world.run(damage)
        assert any(text.startswith(found) for text in await problems(world))


async def test_two_thoughts_that_changed_places_are_found(place: Place) -> None:
    async with living(place) as world:
        for number in range(1, 5):
            await world.think(agent("a"), f"step {number}")
        for before, after in ((2, 99), (3, 2), (99, 3)):
            await world.run("UPDATE thoughts SET number = :after WHERE number = :before", before=before, after=after)
        assert {text.split(" ")[1] for text in await problems(world)} >= {"2", "3"}


async def test_a_thought_moved_to_another_session_is_found_in_both(place: Place) -> None:
    async with living(place) as world:
        one = (await world.think(agent("a"), "one"))["sessionId"]
        other = (await world.think(agent("b"), "other"))["sessionId"]
        await world.run(
            "UPDATE thoughts SET number = 2, session_id = :other WHERE session_id = :one", one=one, other=other
        )
        assert len(await problems(world)) >= 2
