"""Sessions are listed, searched, read, exported, named, pinned, archived, linked and deleted."""

from __future__ import annotations

import json

import pytest
from tests.contract.conftest import Place
from tests.contract.reasoning_world import ELSEWHERE, PROJECT, WORKTREE, World, agent, living

from holdfast.errors import BadInput, Conflict, NotFound
from holdfast.reasoning.export import Format

pytestmark = pytest.mark.anyio


async def titles(world: World, *arguments: object, **options: object) -> list[str]:
    """The titles of listed sessions."""
    found = await world.reasoning.browser.list(*arguments, **options)
    return [entry["title"] for entry in found["sessions"]]


async def test_sessions_are_listed_newest_first_for_the_project_wherever_it_is_checked_out(place: Place) -> None:
    async with living(place) as world:
        await world.reasoning.start_new(agent("a"), "first")
        await world.later(1)
        await world.reasoning.start_new(agent("w", WORKTREE), "in the worktree")
        await world.later(1)
        await world.reasoning.start_new(agent("e", ELSEWHERE), "elsewhere")
        assert await titles(world, PROJECT) == ["in the worktree", "first"]
        assert await titles(world, ELSEWHERE) == ["elsewhere"]
        assert await titles(world, None) == ["elsewhere", "in the worktree", "first"]


async def test_a_listing_is_paged_without_gap_or_repeat(place: Place) -> None:
    async with living(place) as world:
        for number in range(7):
            await world.reasoning.start_new(agent("a"), f"session {number}")
        seen: list[str] = []
        cursor: str | None = None
        while True:
            page = await world.reasoning.browser.list(PROJECT, limit=3, cursor=cursor)
            seen += [entry["title"] for entry in page["sessions"]]
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        assert seen == [f"session {number}" for number in reversed(range(7))]
        with pytest.raises(BadInput, match="cursor"):
            await world.reasoning.browser.list(PROJECT, cursor="1; DROP TABLE sessions")


async def test_a_listing_is_filtered_by_status_and_by_exact_tags(place: Place) -> None:
    async with living(place) as world:
        await world.reasoning.start_new(agent("a"), "tagged", ["Alpha", "x_y"])
        await world.reasoning.start_new(agent("a"), "other", ["alphabet", "xzy"])
        archived = await world.reasoning.start_new(agent("a"), "archived")
        await world.reasoning.browser.archive(agent("a"), archived["session"]["id"])
        assert await titles(world, PROJECT, tags=["Alpha"]) == ["tagged"]
        assert await titles(world, PROJECT, tags=["alpha"]) == []
        assert await titles(world, PROJECT, tags=["x_y", "Alpha"]) == ["tagged"]
        assert await titles(world, PROJECT, "archived") == ["archived"]
        assert await titles(world, PROJECT, "all") == ["archived", "other", "tagged"]
        with pytest.raises(BadInput, match="status: must be active"):
            await titles(world, PROJECT, "open")


async def test_search_finds_words_with_their_surroundings_in_this_project_or_everywhere(place: Place) -> None:
    async with living(place) as world:
        here = await world.think(agent("a"), "We chose the elliptic curve because it is fast.")
        await world.think(agent("a"), "Nothing of note.")
        there = await world.think(agent("e", ELSEWHERE), "An Elliptic orbit.")
        found = await world.reasoning.browser.search(PROJECT, "ELLIPTIC cur")
        assert found["results"] == [
            {
                "sessionId": here["sessionId"],
                "title": here["title"],
                "status": "active",
            },
            {
                "sessionId": here["sessionId"],
                "title": here["title"],
                "status": "active",
                "thoughtNumber": 1,
                "snippet": "We chose the **elliptic** **curve** because it is fast.",
            },
        ]
        everywhere = await world.reasoning.browser.search(PROJECT, "elliptic", everywhere=True)
        assert {hit["sessionId"] for hit in everywhere["results"]} == {here["sessionId"], there["sessionId"]}
        assert (found["scope"], everywhere["scope"]) == ("project", "all")


@pytest.mark.parametrize(
    "query",
    ['"', "foo AND (", "NOT x", "a* OR b", "content:x", "x ' & | ! y", "NEAR(a b)", "^x", "-x", "a\\'b", "% _", ":*"],
)
async def test_what_is_searched_for_is_never_a_query_language(place: Place, query: str) -> None:
    async with living(place) as world:
        await world.think(agent("a"), "plain text")
        try:
            found = await world.reasoning.browser.search(PROJECT, query)
        except BadInput as error:
            assert error.field == "query"
        else:
            assert found["results"] == []


async def test_search_finds_parts_of_names_titles_and_tags_and_skips_the_deleted(place: Place) -> None:
    async with living(place) as world:
        made = (await world.think(agent("a"), "Edited src/file_name.py for größe"))["sessionId"]
        await world.reasoning.browser.rename(agent("a"), None, "A new Heading")
        await world.reasoning.browser.tag(agent("a"), None, ["blue-print"])
        for query in ("name", "file_name.py", "src/file", "GRÖSSE".lower().replace("ss", "ß"), "heading", "blue"):
            results = (await world.reasoning.browser.search(PROJECT, query))["results"]
            assert [hit["sessionId"] for hit in results] == [made], query
        await world.reasoning.browser.archive(agent("a"), made)
        assert (await world.reasoning.browser.search(PROJECT, "name"))["results"][0]["status"] == "archived"
        await world.reasoning.browser.delete(made, made)
        assert (await world.reasoning.browser.search(PROJECT, "name"))["results"] == []


async def test_search_pages_through_many_hits(place: Place) -> None:
    async with living(place) as world:
        await world.reasoning.start_new(agent("a"), "counting")
        for number in range(5):
            await world.think(agent("a"), f"needle {number}")
        first = await world.reasoning.browser.search(PROJECT, "needle", limit=3)
        second = await world.reasoning.browser.search(PROJECT, "needle", limit=3, cursor=first["nextCursor"])
        numbers = [hit["thoughtNumber"] for hit in first["results"] + second["results"]]
        assert sorted(numbers) == [1, 2, 3, 4, 5]
        assert "nextCursor" not in second


async def test_get_shows_the_structure_or_a_range_of_whole_thoughts(place: Place) -> None:
    async with living(place) as world:
        await world.think(agent("a"), "start " + "x" * 200)
        await world.think(agent("a"), "second")
        await world.think(agent("a"), "alternative", branch_id="alt", branch_from=1)
        await world.think(agent("a"), "better second", revises=2)
        outline = await world.reasoning.browser.outline(agent("a"), None)
        assert [entry["thoughtNumber"] for entry in outline["outline"]] == [1, 2, 3, 4]
        assert len(outline["outline"][0]["begins"]) == 80
        assert "thought" not in outline["outline"][0]
        assert (outline["outline"][2]["branchId"], outline["outline"][3]["revisesThought"]) == ("alt", 2)
        page = await world.reasoning.browser.outline(agent("a"), None, limit=3)
        rest = await world.reasoning.browser.outline(agent("a"), None, cursor=page["nextCursor"])
        assert [entry["thoughtNumber"] for entry in rest["outline"]] == [4]
        passage = await world.reasoning.browser.passage(agent("a"), None, 1, 2)
        assert [len(entry["thought"]) for entry in passage["thoughts"]] == [206, 6]
        assert len((await world.reasoning.browser.passage(agent("a"), None, 4, None))["thoughts"]) == 1
        with pytest.raises(BadInput, match="within 1-4"):
            await world.reasoning.browser.passage(agent("a"), None, 3, 9)
        with pytest.raises(NotFound, match=r"Thought 9 .* not found .*1-4"):
            await world.reasoning.browser.thought(agent("a"), passage["session"]["id"], 9)


async def test_a_range_never_answers_more_than_a_reply_carries(place: Place) -> None:
    async with living(place) as world:
        made = await world.think(agent("a"), "ä" * 500_000)
        for number in range(4):
            await world.think(agent("a"), str(number) * 100_000)
        huge = await world.reasoning.browser.passage(agent("a"), None, 1, 5)
        assert len(json.dumps(huge, ensure_ascii=False)) <= 25_000
        assert huge["thoughts"][0]["truncated"] is True
        assert "holdfast://sessions" in huge["wholeThoughts"]
        texts: dict[int, str] = {}
        cursor: str | None = "2.0"
        while cursor:
            page = await world.reasoning.browser.passage(agent("a"), made["sessionId"], 2, 5, cursor=cursor)
            assert len(json.dumps(page, ensure_ascii=False)) <= 25_000
            for entry in page["thoughts"]:
                texts[entry["thoughtNumber"]] = texts.get(entry["thoughtNumber"], "") + entry["thought"]
            cursor = page.get("nextCursor")
        assert texts == {number + 2: str(number) * 100_000 for number in range(4)}


@pytest.mark.parametrize("form", list(Format))
async def test_an_export_in_pages_holds_every_thought_branch_and_revision(place: Place, form: Format) -> None:
    async with living(place) as world:
        for number in range(1, 6):
            await world.think(agent("a"), f"step-{number} " + "x" * 9_000)
        await world.think(agent("a"), "step-6", branch_id="alt", branch_from=2)
        await world.think(agent("a"), "step-7", revises=3)
        pages: list[str] = []
        cursor: str | None = None
        while True:
            page = await world.reasoning.browser.export(agent("a"), None, form, cursor=cursor)
            pages.append(page["text"])
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        whole = "\n".join(pages)
        assert all(f"step-{number}" in whole for number in range(1, 8))
        if form is Format.MERMAID:
            assert len(pages) == 1, "labels are short"
        else:
            assert len(pages) > 1
        if form is Format.JSON:
            numbers = [entry["thoughtNumber"] for page in pages for entry in json.loads(page)["thoughts"]]
            assert numbers == list(range(1, 8))
            assert json.loads(pages[-1])["branches"][0]["branchId"] == "alt"
        elif form is Format.MERMAID:
            assert 't2 -->|"branch alt"| t6' in whole
            assert 't7 -.->|"revises"| t3' in whole
            assert all(f"t{number} --> t{number + 1}\n" in whole for number in range(1, 5))
            assert "t5 --> t7" in whole
        else:
            assert "## Thought 6, branch `alt` from 2" in whole
            assert "## Thought 7, revises 3" in whole


async def test_a_session_is_renamed_and_tagged_without_becoming_the_most_recent(place: Place) -> None:
    async with living(place) as world:
        older = (await world.reasoning.start_new(agent("a"), "older"))["session"]
        newer = (await world.reasoning.start_new(agent("a"), "newer"))["session"]
        await world.later(5)
        renamed = await world.reasoning.browser.rename(agent("a"), older["id"], "renamed")
        tagged = await world.reasoning.browser.tag(agent("a"), older["id"], ["a", "b"])
        assert (renamed["session"]["title"], tagged["session"]["tags"]) == ("renamed", ["a", "b"])
        assert (await world.reasoning.load_context(agent("a")))["session"]["id"] == newer["id"]
        assert (await world.kinds(older["id"]))[-2:] == ["reasoning.session_updated"] * 2


async def test_one_session_is_pinned_per_root(place: Place) -> None:
    async with living(place) as world:
        first = (await world.reasoning.start_new(agent("a"), "first"))["session"]["id"]
        second = (await world.reasoning.start_new(agent("a"), "second"))["session"]["id"]
        other = (await world.reasoning.start_new(agent("e", ELSEWHERE), "other"))["session"]["id"]
        for session_id in (other, first, second):
            assert (await world.reasoning.browser.pin(agent("a"), session_id))["session"]["pinned"] is True
        pinned = await world.rows("SELECT id FROM sessions WHERE pinned = 1")
        assert {row["id"] for row in pinned} == {second, other}
        assert (await world.reasoning.browser.unpin(agent("a"), second))["session"]["pinned"] is False
        rootless = (await world.reasoning.start_new(agent("r", None)))["session"]["id"]
        with pytest.raises(Conflict, match="has no root"):
            await world.reasoning.browser.pin(agent("a"), rootless)


async def test_linked_sessions_show_each_other(place: Place) -> None:
    async with living(place) as world:
        here = (await world.think(agent("a"), "here"))["sessionId"]
        there = (await world.think(agent("e", ELSEWHERE), "there"))["sessionId"]
        for _ in range(2):
            await world.reasoning.browser.link(agent("a"), None, there)
        loaded = await world.reasoning.load_context(agent("a"), here)
        assert loaded["links"] == [{"sessionId": there, "title": "there", "mcpRootUri": ELSEWHERE.uri}]
        outline = await world.reasoning.browser.outline(agent("e"), there)
        assert [link["sessionId"] for link in outline["links"]] == [here]
        assert (await world.kinds(there)).count("reasoning.session_linked") == 1
        with pytest.raises(BadInput, match="linkTo: is the session itself"):
            await world.reasoning.browser.link(agent("a"), here, here)
        with pytest.raises(NotFound, match="Session nowhere not found"):
            await world.reasoning.browser.link(agent("a"), here, "nowhere")


async def test_delete_asks_for_the_exact_id_and_restore_brings_everything_back(place: Place) -> None:
    async with living(place) as world:
        made = (await world.think(agent("a"), "keep me"))["sessionId"]
        with pytest.raises(BadInput, match="sessionId: is missing; delete needs it spelled out"):
            await world.reasoning.browser.delete(None, made)
        with pytest.raises(BadInput, match="confirm: must repeat the exact sessionId"):
            await world.reasoning.browser.delete(made, made[:-1])
        deleted = await world.reasoning.browser.delete(made, made)
        assert (deleted["session"]["status"], "30 days" in deleted["message"]) == ("deleted", True)
        assert await titles(world, PROJECT) == []
        with pytest.raises(Conflict, match="restore"):
            await world.reasoning.browser.outline(agent("a"), made)
        restored = await world.reasoning.browser.restore(made)
        assert (restored["session"]["status"], restored["session"]["thoughtCount"]) == ("active", 1)
        assert (await world.think(agent("a"), "on"))["sessionId"] == made


async def test_without_an_id_operations_mean_the_session_the_caller_is_on(place: Place) -> None:
    async with living(place) as world:
        with pytest.raises(BadInput, match="sessionId: is missing, and this caller is on no session"):
            await world.reasoning.browser.rename(agent("a"), None, "mine")
        with pytest.raises(BadInput, match="sessionId: is missing"):
            await world.reasoning.browser.steps(agent(None), None)
        made = await world.think(agent("a"), "one")
        assert (await world.reasoning.browser.rename(agent("a"), None, "mine"))["session"]["id"] == made["sessionId"]


async def test_analyze_counts_without_quoting(place: Place) -> None:
    async with living(place) as world:
        await world.think(agent("a"), "one")
        await world.later(30_000)
        await world.think(agent("a"), "two", branch_id="alt", branch_from=1)
        await world.think(agent("a"), "three", revises=1)
        analysis = await world.reasoning.browser.steps(agent("a"), None)
        assert analysis["thoughts"]["total"] == 3
        assert analysis["thoughts"]["onBranches"] == 1
        assert analysis["revisions"]["mostRevised"] == [{"thoughtNumber": 1, "times": 1}]
        assert analysis["branches"]["shape"] == [{"branchId": "alt", "fromThought": 1, "thoughtCount": 1, "depth": 1}]
        assert analysis["pace"]["longestGapSeconds"] >= 30
