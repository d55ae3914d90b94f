"""The session that comes back is the one that was meant: after hours, pinned, or shared by several roots."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.installation import Clocked
from tests.postgres import fresh_database
from tests.process.clients import Session, Way
from tests.shared_daemon import Guest

pytestmark = pytest.mark.anyio

HOUR = 3_600_000
STDIO = Way("stdio", "legacy")
STRANGER = Way("http", "modern")


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def clocked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clocked]:
    """A running Holdfast on each engine, for all tests here that let time pass."""
    installation = Clocked(tmp_path_factory.mktemp("clocked") / "holdfast")
    if request.param == "postgres":
        installation.settings["HOLDFAST_DATABASE_URL"] = fresh_database(request.getfixturevalue("postgres"), keep=True)
    try:
        installation.serve()
        yield installation
    finally:
        installation.close()


async def _earlier_work(clocked: Clocked, project: Path, way: Way = STDIO) -> str:
    """A session of three thoughts, left three hours ago."""
    async with way.connect(clocked, cwd=str(project), roots=[project.as_uri()]) as client:
        for number in range(1, 4):
            made = await client.think(f"step {number} of the earlier work")
    clocked.later(3 * HOUR)
    return str(made["sessionId"])


@pytest.mark.parametrize("way", [STDIO, STRANGER], ids=str)
async def test_a_new_session_names_the_one_that_was_left_hours_ago_and_load_context_returns_that(
    clocked: Clocked, project: Path, way: Way
) -> None:
    left = await _earlier_work(clocked, project, way)
    async with way.connect(clocked, cwd=str(project), roots=[project.as_uri()]) as client:
        begun = await client.think("back again, where was I")
        assert begun["status"] == "created"
        previous = begun["previous"]
        assert previous["updatedAt"].endswith("Z")
        del previous["updatedAt"]
        assert previous == {"sessionId": left, "title": "step 1 of the earlier work", "thoughtCount": 3}
        assert f'init {{operation: "load_context", sessionId: "{left}"}}' in begun["message"]
        assert "previous" not in await client.think("back again, where was I"), "said once, when it is begun"
        for _ in range(2):
            context = await client.init("load_context")
            assert (context["session"]["id"], len(context["thoughts"])) == (left, 3)
            assert context["justBegun"]["sessionId"] == begun["sessionId"]
        if way is STDIO:
            assert (await client.think("step 4"))["sessionId"] == left


async def test_a_session_begun_on_purpose_or_gone_on_with_is_the_one_that_is_loaded(
    clocked: Clocked, project: Path
) -> None:
    await _earlier_work(clocked, project)
    async with STDIO.connect(clocked, cwd=str(project)) as client:
        meant = (await client.init("start_new", title="Another matter"))["session"]["id"]
        await client.think("its first thought")
        assert (await client.init("load_context"))["session"]["id"] == meant
    clocked.later(3 * HOUR)
    async with STDIO.connect(clocked, cwd=str(project)) as client:
        begun = (await client.think("one"))["sessionId"]
        await client.think("two")
        context = await client.init("load_context")
        assert context["session"]["id"] == begun
        assert "justBegun" not in context


async def _pinned_and_newer(client: Session) -> str:
    """A pinned session, and a newer one that is not."""
    pinned = (await client.init("start_new", title="The main line"))["session"]["id"]
    await client.think("what the pinned one holds")
    await client.call("session", operation="pin")
    await client.init("start_new", title="An aside")
    await client.think("what the aside holds")
    return str(pinned)


async def test_a_thought_a_resume_and_a_briefing_go_by_the_pin(clocked: Clocked, project: Path) -> None:
    async with STDIO.connect(clocked, cwd=str(project)) as client:
        pinned = await _pinned_and_newer(client)
    async with STDIO.connect(clocked, cwd=str(project)) as client:
        told = await client.call("resume")
        assert "what the pinned one holds" in str(told)
        assert (await client.client.read_resource("holdfast://briefing")).model_dump_json().count("Pinned reasoning")
        gone_on = await client.think("and on")
        assert (gone_on["sessionId"], gone_on["status"]) == (pinned, "recovered")
    clocked.later(30 * 24 * HOUR)
    async with STDIO.connect(clocked, cwd=str(project)) as client:
        assert (await client.think("after a month"))["sessionId"] == pinned, "a pin does not grow old"
        assert (await client.init("start_new", title="On purpose"))["success"]
        assert (await client.think("here"))["sessionId"] != pinned, "who begins another one is on that"


async def test_an_agent_on_another_session_is_told_of_the_pinned_one_beside_its_own(
    clocked: Clocked, project: Path
) -> None:
    env = {"CLAUDE_CODE_SESSION_ID": "5e0b3f4e-7f3e-4c11-9c5e-2a0a2f6f1a10"}
    async with STDIO.connect(clocked, cwd=str(project), env=env) as client:
        await _pinned_and_newer(client)
        told = str(await client.call("resume"))
        assert "what the pinned one holds" in told
        assert "what the aside holds" in told


async def test_a_session_that_belongs_to_several_roots_is_recovered_from_each(
    shared: Guest, project: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other-repository"
    other.mkdir()
    async with STDIO.connect(shared, cwd=str(project)) as client:
        for number in range(2):
            made = (await client.think(f"spans both repositories {number}"))["sessionId"]
        for _ in range(2):
            linked = await client.call("session", operation="link", mcpRootUri=other.as_uri())
            assert linked["linkedRoot"] == other.as_uri()
        assert "own root" in await client.refused("session", operation="link", mcpRootUri=project.as_uri())
    for root in (other, project, other):
        async with STDIO.connect(shared, cwd=str(root)) as client:
            assert "spans both repositories 1" in str(await client.call("resume"))
            context = await client.init("load_context")
            assert (context["session"]["id"], context["linkedRoots"]) == (made, [other.as_uri()])
            assert "crossRoot" not in context
            listed = await client.init("list_sessions")
            assert [session["id"] for session in listed["sessions"]] == [made]
            hits = (await client.call("session", operation="search", query="spans"))["results"]
            assert {hit["sessionId"] for hit in hits} == {made}
        async with STDIO.connect(shared, cwd=str(root)) as client:
            gone_on = await client.think(f"a thought in {root.name}")
            assert (gone_on["sessionId"], gone_on["status"]) == (made, "recovered")
            assert "crossRoot" not in gone_on
    async with STDIO.connect(shared, cwd=str(other)) as here, STDIO.connect(shared, cwd=str(project)) as there:
        assert (await here.think("the first to come"))["sessionId"] == made
        assert (await there.think("the second"))["sessionId"] != made, "two live agents are never merged"
