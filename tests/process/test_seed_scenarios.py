"""The seed's four scenarios and six acceptance criteria: every transport, both eras, both engines, real processes."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.installation import Installation
from tests.process.clients import WAYS, Session, Way
from tests.shared_daemon import Guest

pytestmark = pytest.mark.anyio


async def test_a_session_is_recovered_after_the_mcp_session_changed(shared: Guest, way: Way, project: Path) -> None:
    root = project.as_uri()
    async with way.connect(shared, cwd=str(project)) as first:
        bound = await first.init("start_new", title="Exploration", mcpRootUri=root)
        session_id = bound["session"]["id"]
        assert bound["session"]["mcpRootUri"] == root
        for number in range(1, 13):
            reply = await first.think(f"thought number {number}", thoughtNumber=number, sessionId=session_id)
            assert reply["thoughtNumber"] == number
    async with way.connect(shared, cwd=str(project)) as second:
        context = await second.init("load_context", mcpRootUri=root)
        assert context["success"] is True
        assert context["message"].startswith(f"Auto-recovered session {session_id} (12 thoughts, last updated ")
        assert context["session"]["thoughtCount"] == 12
        assert [thought["thought"] for thought in context["thoughts"]] == [f"thought number {n}" for n in range(3, 13)]
        assert context["nextThoughtNumber"] == 13
        reply = await second.think("and on", sessionId=session_id)
        assert (reply["sessionId"], reply["thoughtNumber"]) == (session_id, 13)


async def test_of_several_sessions_the_most_recent_wins(shared: Guest, way: Way, project: Path) -> None:
    root = project.as_uri()
    async with way.connect(shared, cwd=str(project)) as client:
        older = (await client.init("start_new", title="A", mcpRootUri=root))["session"]["id"]
        newer = (await client.init("start_new", title="B", mcpRootUri=root))["session"]["id"]
        assert (await client.init("load_context", mcpRootUri=root))["session"]["id"] == newer
        await client.think("back to A", sessionId=older)
    async with way.connect(shared, cwd=str(project)) as client:
        assert (await client.init("load_context", mcpRootUri=root))["session"]["id"] == older


async def test_an_explicit_session_id_still_works(shared: Guest, way: Way, project: Path) -> None:
    root = project.as_uri()
    async with way.connect(shared, cwd=str(project)) as client:
        older = (await client.init("start_new", title="A", mcpRootUri=root))["session"]["id"]
        await client.init("start_new", title="B", mcpRootUri=root)
        context = await client.init("load_context", sessionId=older)
        assert (context["success"], context["session"]["id"], context["session"]["title"]) == (
            True,
            older,
            "A",
        )
        missing = await client.init("load_context", sessionId="no-such-session")
        assert (missing["success"], missing["message"]) == (False, "Session no-such-session not found")


async def test_no_sessions_for_a_root_suggests_start_new(shared: Guest, way: Way, project: Path) -> None:
    async with way.connect(shared, cwd=str(project)) as client:
        context = await client.init("load_context", mcpRootUri=project.as_uri())
        assert context["success"] is False
        assert context["message"] == "No sessions found for project. Use start_new to begin."


async def test_no_memory_is_needed_the_clients_own_roots_are_enough(shared: Guest, way: Way, project: Path) -> None:
    roots = [project.as_uri()]
    async with way.connect(shared, roots=roots) as first:
        recorded = await first.think("the first thought, with no session and no root named")
        assert recorded["thoughtNumber"] == 1
    async with way.connect(shared, roots=roots) as second:
        context = await second.init("load_context")
        assert context["session"]["id"] == recorded["sessionId"]
        assert context["session"]["mcpRootUri"] == roots[0]
    async with way.connect(shared, roots=[(project.parent / "another").as_uri()]) as stranger:
        assert (await stranger.init("load_context"))["success"] is False


async def test_what_was_acknowledged_survives_kill_nine_of_the_daemon(holdfast: Installation, tmp_path: Path) -> None:
    """Every way at once, each in a project of its own: one kill is the same for all."""
    projects = {way: tmp_path / str(way) for way in WAYS}
    sessions: dict[Way, str] = {}
    async with AsyncExitStack() as behind_relays:
        relayed: dict[Way, Session] = {}
        for way, project in projects.items():
            project.mkdir()
            async with AsyncExitStack() as gone_before:
                stack = behind_relays if way.transport == "stdio" else gone_before
                client = await stack.enter_async_context(way.connect(holdfast, cwd=str(project)))
                sessions[way] = (await client.init("start_new", mcpRootUri=project.as_uri()))["session"]["id"]
                await client.think("before the crash", sessionId=sessions[way])
                if way.transport == "stdio":
                    relayed[way] = client
        killed = holdfast.kill_daemon()
        for way, client in relayed.items():
            reply = await client.think("after the crash", sessionId=sessions[way])
            assert (reply["sessionId"], reply["thoughtNumber"]) == (sessions[way], 2), way
        assert holdfast.daemon() not in (None, killed), "a relay has started another daemon"
    for way, project in projects.items():
        async with way.connect(holdfast, cwd=str(project)) as client:
            context = await client.init("load_context", mcpRootUri=project.as_uri())
            assert context["session"]["id"] == sessions[way], way
            assert context["thoughts"][0]["thought"] == "before the crash"
