"""The pages of reasoning sessions: what they show of a tree of thoughts, and what their buttons do."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator

import httpx2
import pytest
from tests.contract.conftest import Place
from tests.contract.dashboard_world import Dashboard, csrf_of, dashboard
from tests.contract.reasoning_world import PROJECT, agent

from holdfast.briefing.service import Briefing, Briefings
from holdfast.capability.briefing import Audience
from holdfast.connections.keys import Scope
from holdfast.dashboard.urls import project_url
from holdfast.identity.project import Root, RootSource
from holdfast.reasoning.model import Draft, Session, Status
from holdfast.reasoning.service import Reasoning

pytestmark = pytest.mark.anyio

HOSTILE = '<script>alert(1)</script>\u202e\x1b[2J"><b onclick=x> {{ 7 * 7 }}'


@pytest.fixture
async def world(place: Place) -> AsyncIterator[Dashboard]:
    async with dashboard(place) as made:
        yield made


def reasoning_of(world: Dashboard) -> Reasoning:
    return world.app.service(Reasoning)


async def begin(world: Dashboard, title: str = "Charged twice") -> str:
    started = await reasoning_of(world).start_new(agent("a"), title)
    assert started is not None
    return started.session.id


async def think(world: Dashboard, session: str, *texts: str, **fields: object) -> None:
    for text in texts:
        await reasoning_of(world).think(agent("a"), Draft(text, True, **fields), session)  # type: ignore[arg-type]


async def branched(world: Dashboard) -> str:
    """Three thoughts, a branch of two from the second, a fourth on the main line that revises the first."""
    session = await begin(world)
    await think(world, session, "orders are slow", "charge retries", "ask the bank")
    await think(world, session, "a longer timeout", "only hides it", branch_id="timeout", branch_from=2)
    await think(world, session, "not slow: booked twice", revises=1)
    return session


async def stored(world: Dashboard, session: str) -> Session:
    return await reasoning_of(world).browser.session(session)


async def act(browser: httpx2.AsyncClient, path: str, **fields: str) -> httpx2.Response:
    return await browser.post(path, data={"csrf": await csrf_of(browser), **fields})


def rows(page: str) -> list[str]:
    """The rows of the tree as text, without their markup."""
    return [
        " ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in re.findall(r'<li data-key="[tf]\d+">(.*?)</li>', page)
    ]


async def test_a_short_session_is_shown_whole_with_branches_and_revisions_linked_both_ways(world: Dashboard) -> None:
    session = await branched(world)
    async with world.signed_in() as browser:
        page = (await browser.get(f"/sessions/{session}")).text
        assert rows(page) == [
            "1 orders are slow revised in 6",
            "2 charge retries",
            "3 ask the bank",
            "4 timeout a longer timeout",
            "5 only hides it",
            "6 revises 1 not slow: booked twice",
        ]
        assert page.count('class="arc"') == 1 and page.count('class="lane"') == 2
        assert "Thought 6</h2>" in page and f'revises <a href="/sessions/{session}?t=1"' in page
        first = (await browser.get(f"/sessions/{session}?t=1")).text
        assert f'revised in <a href="/sessions/{session}?t=6"' in first
        second = (await browser.get(f"/sessions/{session}?t=2")).text
        assert re.search(
            rf'branch <a href="/sessions/{session}\?t=4"[^>]*>timeout</a> leaves here \(2 thoughts\)', second
        )
        fourth = (await browser.get(f"/sessions/{session}?t=4")).text
        assert re.search(rf'from <a href="/sessions/{session}\?t=2"', fourth)


async def test_a_long_stretch_is_one_row_until_it_is_unfolded(world: Dashboard) -> None:
    session = await begin(world)
    await think(world, session, *(f"step {number}" for number in range(1, 61)))
    async with world.signed_in() as browser:
        page = (await browser.get(f"/sessions/{session}")).text
        assert rows(page) == ["1 step 1", "55 thoughts", *(f"{n} step {n}" for n in range(57, 61))]
        assert "step 30" not in page
        (unfold,) = re.findall(r'class="fold" href="([^"]+)"', page)
        unfolded = (await browser.get(unfold.replace("&amp;", "&"))).text
        assert len(rows(unfolded)) == 60 and "step 30" in unfolded
        for bad in ("?t=0", "?t=99999", "?t=x", "?open=9-2", "?open=1-99999999", "?open=;", "?from=99"):
            assert (await browser.get(f"/sessions/{session}{bad}")).status_code == 200, bad


async def test_the_map_of_a_session_counts_revisions_in_equal_parts(
    world: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await begin(world)
    await think(world, session, "one", "two", "three")
    await think(world, session, "not two", revises=2)
    await think(world, session, "five", "six", "seven")
    for text in ("not six", "still not", "never"):
        await think(world, session, text, revises=6)
    browser = reasoning_of(world).browser
    assert (await browser.shape(session, parts=5)).density == ((1, 1), (3, 1), (4, 2))
    assert (await browser.shape(session, parts=3)).density == ((0, 1), (2, 3))
    monkeypatch.setattr("holdfast.reasoning.queries.shape.DENSEST", 1)
    assert (await browser.shape(session, parts=3)).density == ((0, 1), (2, 1))
    async with world.signed_in() as page:
        assert (await page.get(f"/sessions/{session}")).status_code == 200


async def test_branches_in_view_are_drawn_however_many_older_ones_there_are(
    world: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.reasoning.session_browser.SHAPE_LINES", 5)
    session = await begin(world)
    await think(world, session, "the main line")
    for number in range(1, 9):
        await think(world, session, f"try {number}", branch_id=f"way-{number}", branch_from=number)
    async with world.signed_in() as browser:
        page = (await browser.get(f"/sessions/{session}")).text
        begins = [f"{number + 1} way-{number} try {number}" for number in range(1, 9)]
        assert rows(page) == ["1 the main line", *begins], "also of branches beyond the oldest five"
        assert page.count('class="lane"') == 1 + 8
        fourth = (await browser.get(f"/sessions/{session}?t=4")).text
        assert re.search(rf'branch <a href="/sessions/{session}\?t=5"[^>]*>way-4</a> leaves here', fourth)


async def test_a_page_follows_the_newest_thought_and_stays_at_a_chosen_one(world: Dashboard) -> None:
    session = await branched(world)
    async with world.signed_in() as browser:
        regions = {"Holdfast-Parts": "tree thought session_head links"}
        await think(world, session, "send a key")
        newest = (await browser.get(f"/sessions/{session}", headers=regions)).text
        assert "send a key</div>" in newest and 'id="session_head"' in newest and "<h1>" in newest
        chosen = (await browser.get(f"/sessions/{session}?t=2", headers=regions)).text
        assert "charge retries</div>" in chosen and "7 send a key" in rows(chosen)
        assert "<html" not in newest


async def test_hostile_texts_and_long_ones_are_shown_as_text(world: Dashboard) -> None:
    session = await begin(world, HOSTILE[:100])
    await think(world, session, HOSTILE, "w" * 1_000_000, "x" * 20_000 + "the end")
    async with world.signed_in() as browser:
        for path in (f"/sessions/{session}", f"/sessions/{session}?t=1", f"/sessions/{session}?t=2", "/sessions"):
            page = (await browser.get(path)).text
            assert "<script>alert" not in page and "\u202e" not in page and "\x1b" not in page
            assert "&lt;script&gt;alert(1)" in page
            assert len(page) < 150_000
        (on,) = re.findall(r'href="([^"]+)"[^>]*>Next part<', (await browser.get(f"/sessions/{session}?t=3")).text)
        assert "the end</div>" in (await browser.get(on.replace("&amp;", "&"))).text


async def test_buttons_change_the_session(world: Dashboard) -> None:
    session, other = await branched(world), await begin(world, "Refunds")
    async with world.signed_in() as browser:
        at = f"/sessions/{session}"
        assert (await act(browser, f"{at}/rename", title="Booked twice")).status_code == 303
        assert (await stored(world, session)).title == "Booked twice"
        await act(browser, f"{at}/pin")
        assert (await stored(world, session)).pinned
        await act(browser, f"{at}/unpin")
        assert not (await stored(world, session)).pinned
        await act(browser, f"{at}/archive")
        assert (await stored(world, session)).status is Status.ARCHIVED
        assert "Booked twice" not in (await browser.get("/sessions")).text
        assert "Booked twice" in (await browser.get("/sessions?status=archived")).text
        await act(browser, f"{at}/restore")
        assert (await stored(world, session)).status is Status.ACTIVE
        assert (await act(browser, f"{at}/link", other=other[:-2])).status_code == 303
        assert "Booked twice" in (await browser.get(f"/sessions/{other}")).text
        for bad in ("nobody", "", session):
            assert (await act(browser, f"{at}/link", other=bad)).status_code == 422, bad
        assert (await act(browser, f"{at}/rename", title=" ")).status_code == 422


async def test_an_export_is_a_file(world: Dashboard) -> None:
    session = await branched(world)
    async with world.signed_in() as browser:
        at = f"/sessions/{session}/export"
        markdown, data, graph = [await browser.get(f"{at}/{form}") for form in ("markdown", "json", "mermaid")]
        assert "# Charged twice" in markdown.text and "attachment" in markdown.headers["content-disposition"]
        assert len(json.loads(data.text)["thoughts"]) == 6
        assert "t6 -.->" in graph.text
        assert (await browser.get(f"{at}/pdf")).status_code == 404
        assert (await browser.get("/sessions/nobody/export/json")).status_code == 404


async def test_who_may_only_look_sees_no_button_and_no_secret(world: Dashboard) -> None:
    secret = "sk-ant-api03-" + "Ab3dEf6hIj9kLm2nOp5q" * 4 + "-xYzAA"
    session = await begin(world)
    await think(world, session, f"the key is {secret}", "next")
    key = await world.app.keys().create("phone", Scope.READ)
    async with world.signed_in() as owner, world.browser() as reader:
        assert (await reader.post("/sign-in", data={"key": key})).status_code == 200
        assert secret in (await owner.get(f"/sessions/{session}?t=1")).text
        for path in (f"/sessions/{session}?t=1", f"/sessions/{session}", f"/sessions/{session}/export/markdown"):
            page = (await reader.get(path)).text
            assert secret not in page and secret[:40] not in page
            assert set(re.findall(r'<form class="action[^>]*action="([^"]+)"', page)) <= {"/sign-out"}
        for name in ("rename", "pin", "archive", "link"):
            assert (await act(reader, f"/sessions/{session}/{name}", title="x", other="y")).status_code == 403


async def test_sessions_are_listed_by_project_and_page_by_page(world: Dashboard) -> None:
    for number in range(60):
        await begin(world, f"session {number:02}")
    await reasoning_of(world).start_new(agent("e", None), "of no project")
    async with world.signed_in() as browser:
        page = (await browser.get("/sessions")).text
        assert "of no project" in page and page.count("<tr data-key") == 50
        of_project = (await browser.get("/sessions", params={"project": PROJECT.key or ""})).text
        assert "of no project" not in of_project and "session 59" in of_project
        (older,) = re.findall(r'<a href="([^"]+)" rel="next"', of_project)
        rest = (await browser.get(older.replace("&amp;", "&"))).text
        assert rest.count("<tr data-key") == 10 and "session 00" in rest
        assert (await browser.get("/sessions?status=lost")).status_code == 422


async def test_an_empty_session_and_an_unknown_one(world: Dashboard) -> None:
    session = await begin(world, "Nothing yet")
    async with world.signed_in() as browser:
        assert "No thought yet" in (await browser.get(f"/sessions/{session}")).text
        for unknown in ("nobody", "%00", "a%2Fb", "x" * 300):
            assert (await browser.get(f"/sessions/{unknown}")).status_code in (404, 422), unknown


async def test_a_kept_briefing_outlives_thoughts_in_other_projects(
    world: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, real = [], Briefings.on_request

    async def counted(self: Briefings, audience: Audience, limit: int | None = None) -> Briefing:
        made.append(audience.root.uri)
        return await real(self, audience, limit)

    monkeypatch.setattr(Briefings, "on_request", counted)
    session = await begin(world)
    elsewhere = agent("b", Root("file:///home/dev/other", None, RootSource.DIRECTORY))
    other = await reasoning_of(world).start_new(elsewhere, "Elsewhere")
    assert other is not None
    async with world.signed_in() as browser:
        address = project_url(PROJECT.key or PROJECT.uri)
        assert (await browser.get(address)).status_code == 200 and len(made) == 1
        await reasoning_of(world).think(elsewhere, Draft("far away", True), other.session.id)
        await browser.get(address)
        assert len(made) == 1
        await think(world, session, "here")
        await browser.get(address)
        assert len(made) == 2
