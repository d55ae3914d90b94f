"""A session finds its agent again: the requirement's scenarios, and who gets which session."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any, cast

import pytest
from tests.contract.conftest import Place
from tests.contract.reasoning_world import DAY, ELSEWHERE, HOUR, MINUTE, PROJECT, WORKTREE, agent, living

from holdfast.errors import BadInput, Conflict, NotFound
from holdfast.identity.project import Root, RootSource
from holdfast.reasoning.session_choice import FEW, SessionChoice
from holdfast.store import Tx

pytestmark = pytest.mark.anyio


async def test_a_new_connection_gets_the_projects_thoughts_back_without_an_id(place: Place) -> None:
    async with living(place) as world:
        first = agent("before-timeout")
        for number in range(1, 48):
            made = await world.think(first, f"step {number}")
        await world.leave(first)
        await world.later(2 * MINUTE + 1000)
        loaded = await world.reasoning.load_context(agent("after-timeout"))
        assert loaded["success"] is True
        assert loaded["message"] == (
            f"Auto-recovered session {made['sessionId']} (47 thoughts, last updated 2 min ago)"
        )
        assert [entry["thoughtNumber"] for entry in loaded["thoughts"]] == list(range(38, 48))
        assert loaded["thoughts"][-1]["thought"] == "step 47"
        assert loaded["nextThoughtNumber"] == 48
        session = loaded["session"]
        assert (session["thoughtCount"], session["branchCount"]) == (47, 0)
        assert session["mcpRootUri"] == PROJECT.uri
        assert (session["status"], session["pinned"], session["tags"]) == ("active", False, [])
        assert set(session) >= {"id", "title", "createdAt", "updatedAt"}
        assert session["createdAt"].endswith("Z")


async def test_of_several_sessions_the_most_recent_one_is_recovered(place: Place) -> None:
    async with living(place) as world:
        await world.reasoning.start_new(agent("a"), "older")
        newer = await world.reasoning.start_new(agent("a"), "newer")
        await world.leave(agent("a"))
        loaded = await world.reasoning.load_context(agent("b"))
        assert loaded["session"]["id"] == newer["session"]["id"]


async def test_an_explicit_id_wins_over_the_most_recent_session(place: Place) -> None:
    async with living(place) as world:
        older = await world.reasoning.start_new(agent("a"), "older")
        await world.reasoning.start_new(agent("a"), "newer")
        chosen = older["session"]["id"]
        loaded = await world.reasoning.load_context(agent("b"), chosen)
        assert loaded["session"]["id"] == chosen
        assert loaded["message"] == f"Loaded session {chosen} (0 thoughts, last updated just now)"
        assert "crossRoot" not in loaded
        assert (await world.think(agent("b"), "goes on"))["sessionId"] == chosen


async def test_a_project_without_sessions_suggests_start_new(place: Place) -> None:
    async with living(place) as world:
        reply = await world.reasoning.load_context(agent("a"))
        assert reply == {"success": False, "message": "No sessions found for project. Use start_new to begin."}


async def test_an_unknown_id_is_an_answer_for_init_and_an_error_for_a_thought(place: Place) -> None:
    async with living(place) as world:
        reply = await world.reasoning.load_context(agent("a"), "nowhere")
        assert reply["success"] is False
        assert reply["message"] == "Session nowhere not found"
        with pytest.raises(NotFound, match="Session nowhere not found"):
            await world.think(agent("a"), "lost", "nowhere")
        assert await world.rows("SELECT id FROM sessions") == []


async def test_a_session_of_another_root_can_be_named_and_that_is_marked_and_logged(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    async with living(place) as world:
        made = await world.think(agent("a", ELSEWHERE), "over there")
        with caplog.at_level(logging.INFO, "holdfast.reasoning"):
            loaded = await world.reasoning.load_context(agent("b"), made["sessionId"])
        assert loaded["crossRoot"] is True
        assert made["sessionId"] in caplog.text
        assert (await world.think(agent("b"), "across"))["crossRoot"] is True
        again = await world.think(agent("b"), "across again", made["sessionId"])
        assert (again["crossRoot"], again["thoughtNumber"]) == (True, 3)
        assert (await world.kinds(made["sessionId"])).count("reasoning.cross_root") == 1


async def test_without_a_root_load_context_asks_for_one_and_warns(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    async with living(place) as world:
        made = await world.think(agent("a", None), "rootless")
        with caplog.at_level(logging.WARNING, "holdfast.reasoning"):
            reply = await world.reasoning.load_context(agent("a", None))
        assert reply["success"] is False
        assert "sessionId" in reply["message"]
        assert "mcpRootUri" in reply["message"]
        assert reply["attachedSession"] == made["sessionId"]
        assert "bind" in caplog.text


async def test_two_live_agents_in_one_root_keep_two_sessions_and_know_of_each_other(place: Place) -> None:
    async with living(place) as world:
        first = await world.think(agent("a"), "mine")
        second = await world.think(agent("b"), "mine too")
        assert second["status"] == "created"
        assert second["sessionId"] != first["sessionId"]
        assert second["others"] == [{"sessionId": first["sessionId"], "title": "mine", "client": "client-a"}]
        assert "others" not in await world.think(agent("b"), "going on")
        assert (await world.think(agent("a"), "still mine"))["sessionId"] == first["sessionId"]


async def test_load_context_passes_over_a_session_another_live_agent_is_in(place: Place) -> None:
    async with living(place) as world:
        held = await world.think(agent("a"), "held")
        reply = await world.reasoning.load_context(agent("b"))
        assert reply["success"] is False
        assert reply["message"].startswith("No sessions found for project. Use start_new to begin.")
        assert reply["heldByOthers"] == [{"sessionId": held["sessionId"], "title": "held", "client": "client-a"}]
        joined = await world.reasoning.load_context(agent("b"), held["sessionId"])
        assert joined["session"]["id"] == held["sessionId"]


async def test_whoever_was_given_a_session_keeps_it_when_its_former_caller_comes_back(place: Place) -> None:
    async with living(place) as world:
        made = await world.think(agent("away"), "begun")
        await world.leave(agent("away"))
        await world.later(MINUTE)
        given = await world.reasoning.load_context(agent("here"))
        assert given["session"]["id"] == made["sessionId"]
        await world.reasoning.get_state(agent("away"))  # it is back, and has not said anything yet
        going_on = await world.think(agent("here"), "going on")
        assert (going_on["sessionId"], going_on["status"]) == (made["sessionId"], "continued")
        assert (await world.think(agent("away"), "elsewhere"))["sessionId"] != made["sessionId"]


async def test_a_free_session_is_found_behind_many_that_others_are_in(place: Place) -> None:
    async with living(place) as world:
        left = await world.think(agent("before"), "left behind")
        await world.leave(agent("before"))
        others = [agent(f"other{number}") for number in range(3 * FEW)]
        for other in others:
            await world.service.start_new(other)
            await world.think(other, "at work")
        first = await world.reasoning.load_context(agent("b"))
        assert first["session"]["id"] == left["sessionId"]
        second = await world.reasoning.load_context(agent("c"))
        assert second["success"] is False
        assert len(second["heldByOthers"]) == len(others) + 1


async def test_of_agents_that_ask_at_once_only_one_gets_the_session(place: Place) -> None:
    async with living(place) as world:
        made = await world.think(agent("before"), "left behind")
        await world.leave(agent("before"))
        callers = [agent(f"a{place}", WORKTREE if place % 2 else PROJECT) for place in range(6)]
        await asyncio.gather(*(world.reasoning.get_state(caller) for caller in callers))
        replies = await asyncio.gather(*(world.reasoning.load_context(caller) for caller in callers))
        got = [reply["session"]["id"] for reply in replies if reply["success"]]
        assert got == [made["sessionId"]]


class Watched:
    """A transaction that keeps the order of what is done in it."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self.engine = tx.engine
        self.done: list[str] = []

    def lock(self, name: str) -> None:
        self.done.append(f"lock {name}")
        self._tx.lock(name)

    def __getattr__(self, name: str) -> Any:
        def watched(*arguments: Any, **params: Any) -> Any:
            if name in ("one", "all") and "FROM sessions" in arguments[0]:
                self.done.append("look")
            return getattr(self._tx, name)(*arguments, **params)

        return watched


async def test_a_project_is_locked_before_its_sessions_are_looked_at_whichever_path_it_has(place: Place) -> None:
    async with living(place) as world:

        def look(tx: Tx) -> list[list[str]]:
            done = []
            for root in (PROJECT, WORKTREE):
                for_thought, for_recovery = Watched(tx), Watched(tx)
                SessionChoice(cast(Tx, for_thought), world.connections, None, root).for_thought(None, HOUR)
                SessionChoice(cast(Tx, for_recovery), world.connections, None, root).for_recovery(root)
                done += [for_thought.done[:2], for_recovery.done[:2]]
            return done

        assert await world.store.write(look) == [[f"lock project:{PROJECT.key}", "look"]] * 4


async def test_a_pinned_session_is_recovered_before_a_newer_one_unless_it_is_held(place: Place) -> None:
    async with living(place) as world:
        pinned = (await world.think(agent("a"), "the main one"))["sessionId"]
        await world.reasoning.browser.pin(agent("a"), None)
        newer = (await world.reasoning.start_new(agent("b"), "newer"))["session"]["id"]
        await world.leave(agent("b"))
        assert (await world.reasoning.load_context(agent("c")))["session"]["id"] == newer
        await world.leave(agent("a"))
        assert (await world.reasoning.load_context(agent("d")))["session"]["id"] == pinned


async def test_an_agent_whose_connection_is_gone_gets_its_session_back_with_the_next_thought(place: Place) -> None:
    async with living(place) as world:
        made = await world.think(agent("a"), "before")
        await world.leave(agent("a"))
        back = await world.think(agent("a2"), "after")
        assert (back["sessionId"], back["status"], back["thoughtNumber"]) == (made["sessionId"], "recovered", 2)


async def test_a_caller_of_a_daemon_that_stopped_vouching_holds_nothing(place: Place) -> None:
    async with living(place) as world:
        made = await world.think(agent("a"), "before the crash")
        world.place.shift += MINUTE
        assert (await world.think(agent("b"), "after"))["sessionId"] == made["sessionId"]


async def test_a_thought_does_not_resume_what_is_older_than_the_limit_but_load_context_does(place: Place) -> None:
    async with living(place) as world:
        old = await world.think(agent("a"), "long ago")
        await world.leave(agent("a"))
        await world.later(2 * HOUR + MINUTE)
        assert (await world.reasoning.load_context(agent("b")))["session"]["id"] == old["sessionId"]
        await world.leave(agent("b"))
        fresh = await world.think(agent("c"), "today")
        assert (fresh["status"], fresh["title"]) == ("created", "today")


async def test_the_same_caller_goes_on_in_its_session_however_long_it_was_away(place: Place) -> None:
    async with living(place) as world:
        made = await world.think(agent("a"), "before")
        await world.leave(agent("a"))
        await world.later(30 * DAY)
        back = await world.think(agent("a"), "after")
        assert (back["sessionId"], back["status"]) == (made["sessionId"], "continued")


async def test_another_path_of_the_same_project_is_recovered_only_where_this_root_has_none(place: Place) -> None:
    async with living(place) as world:
        made = await world.think(agent("a"), "in the main checkout")
        neighbour = await world.reasoning.load_context(agent("w", WORKTREE))
        assert neighbour["success"] is False
        assert neighbour["heldByOthers"][0]["sessionId"] == made["sessionId"]
        await world.leave(agent("a"))
        loaded = await world.reasoning.load_context(agent("w", WORKTREE))
        assert loaded["fromOtherRoot"] == PROJECT.uri
        assert "crossRoot" not in loaded
        await world.reasoning.start_new(agent("w", WORKTREE), "own")
        own = await world.reasoning.load_context(agent("w", WORKTREE))
        assert own["session"]["title"] == "own"
        assert "fromOtherRoot" not in own


async def test_a_thought_in_a_worktree_recovers_the_project_and_says_from_where(place: Place) -> None:
    async with living(place) as world:
        made = await world.think(agent("a"), "in the main checkout")
        await world.leave(agent("a"))
        back = await world.think(agent("w", WORKTREE), "in the worktree")
        assert (back["sessionId"], back["fromOtherRoot"]) == (made["sessionId"], PROJECT.uri)
        following = await world.think(agent("w", WORKTREE), "next")
        assert "crossRoot" not in following
        assert "fromOtherRoot" not in following


async def test_archived_sessions_are_not_recovered_and_a_thought_by_id_reopens_one(place: Place) -> None:
    async with living(place) as world:
        made = await world.think(agent("a"), "old")
        await world.reasoning.browser.archive(agent("a"), None)
        await world.leave(agent("a"))
        assert (await world.reasoning.load_context(agent("b")))["success"] is False
        reopened = await world.think(agent("b"), "again", made["sessionId"])
        assert (reopened["reopened"], reopened["thoughtNumber"]) == (True, 2)
        assert (await world.reasoning.browser.session(made["sessionId"])).status == "active"


async def test_a_deleted_session_is_refused_with_the_way_to_restore_it(place: Place) -> None:
    async with living(place) as world:
        made = (await world.think(agent("a"), "gone"))["sessionId"]
        await world.reasoning.browser.delete(made, made)
        with pytest.raises(Conflict, match="restore"):
            await world.think(agent("a"), "more", made)
        refused = await world.reasoning.load_context(agent("a"), made)
        assert refused["success"] is False
        assert "restore" in refused["recovery"]
        fresh = await world.think(agent("a"), "without naming it")
        assert (fresh["status"], fresh["sessionId"] != made) == ("created", True)


async def test_a_stranger_without_a_root_is_told_to_pass_the_id_on(place: Place) -> None:
    async with living(place) as world:
        first = await world.think(agent(None, None), "who am I")
        assert first["sessionId"] in first["message"]
        other = await world.think(agent(None, None), "another")
        assert other["sessionId"] != first["sessionId"]
        assert (await world.think(agent(None, None), "on", first["sessionId"]))["thoughtNumber"] == 2


async def test_a_stranger_with_a_root_finds_the_projects_session(place: Place) -> None:
    async with living(place) as world:
        first = await world.think(agent(None), "one")
        assert (await world.think(agent(None), "two"))["sessionId"] == first["sessionId"]


async def test_earlier_thoughts_are_paged_by_cursor_and_long_ones_are_cut(place: Place) -> None:
    async with living(place) as world:
        for number in range(1, 13):
            await world.think(agent("a"), "x" * 2001 if number == 12 else f"step {number}")
        loaded = await world.reasoning.load_context(agent("a"), limit=5)
        assert [entry["thoughtNumber"] for entry in loaded["thoughts"]] == [8, 9, 10, 11, 12]
        assert loaded["thoughts"][-1]["truncated"] is True
        assert len(loaded["thoughts"][-1]["thought"]) == 2000
        assert "get" in loaded["wholeThoughts"]
        earlier = await world.reasoning.load_context(agent("a"), limit=100, cursor=loaded["nextCursor"])
        assert [entry["thoughtNumber"] for entry in earlier["thoughts"]] == list(range(1, 8))
        assert "nextCursor" not in earlier
        assert earlier["nextThoughtNumber"] == 13
        with pytest.raises(BadInput, match="limit: is 101"):
            await world.reasoning.load_context(agent("a"), limit=101)
        with pytest.raises(BadInput, match="cursor"):
            await world.reasoning.load_context(agent("a"), cursor="x")


async def test_get_state_says_who_and_where_the_caller_is(place: Place) -> None:
    async with living(place) as world:
        caller = agent("a", client_version="2.0")
        made = await world.think(caller, "here")
        state = await world.reasoning.get_state(caller)
        assert (state["era"], state["transport"], state["client"]) == ("legacy", "relay", "client-a 2.0")
        assert (state["root"], state["rootFrom"]) == (PROJECT.uri, "directory")
        assert state["session"]["id"] == made["sessionId"]
        assert state["recording"] is True
        assert state["connection"]
        stranger = await world.reasoning.get_state(agent(None, None))
        assert "connection" not in stranger
        assert "sessionId" in stranger["message"]


async def test_a_bound_root_is_kept_and_turning_to_another_project_leaves_the_old_session(place: Place) -> None:
    async with living(place) as world:
        made = await world.think(agent("a"), "here")
        elsewhere = replace(ELSEWHERE, source=RootSource.ARGUMENT)
        bound = await world.reasoning.bind_root(agent("a", elsewhere))
        assert bound == {"success": True, "boundRoot": ELSEWHERE.uri}
        listed = await world.reasoning.list_roots(agent("a", client_roots=("file:///one", "file:///two")))
        assert (listed["boundRoot"], listed["roots"]) == (ELSEWHERE.uri, ["file:///one", "file:///two"])
        following = await world.think(agent("a", ELSEWHERE), "there")
        assert (following["status"], following["sessionId"] != made["sessionId"]) == ("created", True)


async def test_binding_takes_the_clients_only_root_and_asks_where_there_are_several(place: Place) -> None:
    async with living(place) as world:
        only = await world.reasoning.bind_root(agent("a", None, client_roots=("file:///srv/only/",)))
        assert only["boundRoot"] == "file:///srv/only"
        with pytest.raises(BadInput, match=r"2 roots.*file:///one"):
            await world.reasoning.bind_root(agent("a", None, client_roots=("file:///one", "file:///two")))
        with pytest.raises(BadInput, match="mcpRootUri"):
            await world.reasoning.bind_root(agent("a", None))
        stranger = await world.reasoning.bind_root(agent(None, Root("file:///x", None, RootSource.ARGUMENT)))
        assert stranger["success"] is False
        assert "mcpRootUri" in stranger["message"]
