"""A client that comes back gets its own connection back, with everything attached to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.installation import Installation
from tests.process.agent import MODERN_META, Agent
from tests.process.clients import Session, Way

pytestmark = pytest.mark.anyio


def _token_of(reply: dict[str, Any]) -> tuple[str, str]:
    connection = reply["connection"]
    return connection["session_id"], connection["reconnect_token"]


@asynccontextmanager
async def _modern(holdfast: Installation, session: str | None = None, token: str | None = None) -> AsyncIterator[Any]:
    """A modern HTTP client that sends its connection's headers with each call."""
    headers = {"Authorization": f"Bearer {holdfast.key()}"}
    if session is not None and token is not None:
        headers |= {"Holdfast-Session": session, "Holdfast-Token": token}
    async with httpx2.AsyncClient(base_url=holdfast.address(), headers=headers, timeout=60) as http:

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            response = await http.post(
                "/mcp",
                headers={
                    "Accept": "application/json, text/event-stream",
                    "Mcp-Protocol-Version": "2026-07-28",
                    "Mcp-Method": "tools/call",
                    "Mcp-Name": tool,
                },
                json={
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "tools/call",
                    "params": {"name": tool, "arguments": arguments, "_meta": MODERN_META},
                },
            )
            assert response.status_code == 200, response.text
            return dict(response.json()["result"])

        yield call


async def test_a_stranger_gets_a_connection_from_init_alone_and_stays_itself_by_its_headers(
    holdfast: Installation, project: Path
) -> None:
    root = project.as_uri()
    async with _modern(holdfast) as call:
        thought = await call("thought", thought="by nobody", nextThoughtNeeded=True)
        assert "connection" not in thought["structuredContent"]
        assert "holdfast/connection" not in thought.get("_meta", {})
        first = (await call("init", operation="start_new", mcpRootUri=root))["structuredContent"]
        another = (await call("init", operation="start_new", mcpRootUri=root))["structuredContent"]
    mine, theirs = _token_of(first), _token_of(another)
    assert mine[0] != theirs[0]
    async with _modern(holdfast, *mine) as call:
        bound = await call("init", operation="bind_root", mcpRootUri=root)
        assert bound["structuredContent"]["success"] is True
        reply = (await call("thought", thought="by headers", nextThoughtNeeded=True))["structuredContent"]
        assert reply["sessionId"] == first["session"]["id"]
        state = (await call("init", operation="get_state"))["structuredContent"]
        assert (state["connection"]["session_id"], state["boundRoot"]) == (mine[0], root)
        assert "connection" not in reply, "a fresh token is not renewed"
    async with _modern(holdfast, mine[0], theirs[1]) as call:
        refused = await call("thought", thought="with another's token", nextThoughtNeeded=True)
        assert refused["isError"] is True
        assert "session_id_mismatch" in refused["content"][0]["text"]


async def test_only_a_tool_call_makes_a_connection(holdfast: Installation, way: Way, project: Path) -> None:
    async with way.connect(holdfast, cwd=str(project)) as session:
        await session.client.list_tools()
        await session.client.list_resources()
        refused = await session.call("reconnect_session", session_id="nobody", reconnect_token="x")  # noqa: S106
        assert refused == {
            "success": False,
            "reason": "invalid_token",
            "message": "Reconnection failed: invalid_token",
        }
        assert await _connections(holdfast) == 0
        await session.init("get_state")
        assert await _connections(holdfast) == 1
        await session.init("list_roots")
        assert await _connections(holdfast) == (2 if str(way) == "http-modern" else 1)


async def _connections(holdfast: Installation) -> int:
    headers = {"Authorization": f"Bearer {holdfast.key()}"}
    async with httpx2.AsyncClient(base_url=holdfast.address(), headers=headers, timeout=60) as http:
        return len((await http.get("/api/mcp/sessions")).json()["sessions"])


async def test_an_agent_with_a_session_id_of_its_own_never_sees_a_token(holdfast: Installation, project: Path) -> None:
    with Agent(holdfast, project, session="known") as agent:
        names = [tool["name"] for tool in agent.request("tools/list")["tools"]]
        assert "reconnect_session" not in names
        result = agent.request("tools/call", {"name": "init", "arguments": {"operation": "get_state"}})
        assert "token" not in json.dumps(result)
        connection = result["structuredContent"]["connection"]["session_id"]
    holdfast.kill_daemon()
    with Agent(holdfast, project, session="known") as agent:
        assert agent.init("get_state")["connection"] == {"session_id": connection}


async def _leave_something(session: Session, root: str) -> tuple[str, str, str]:
    """Make a connection with a bound root and a session; returns its id, its token and the session."""
    connection = _token_of(await session.init("get_state"))
    await session.init("bind_root", mcpRootUri=root)
    reply = await session.think("said before the line broke")
    return *connection, reply["sessionId"]


PAIRS = [
    (Way("stdio", "legacy"), Way("http", "legacy")),
    (Way("http", "legacy"), Way("stdio", "legacy")),
    (Way("stdio", "modern"), Way("http", "legacy")),
    (Way("http", "legacy"), Way("stdio", "modern")),
    (Way("http", "legacy"), Way("http", "legacy")),
    (Way("stdio", "modern"), Way("stdio", "modern")),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0]}-then-{pair[1]}")
async def test_a_client_goes_on_over_another_transport(
    holdfast: Installation, project: Path, pair: tuple[Way, Way]
) -> None:
    root = project.as_uri()
    before, after = pair
    async with before.connect(holdfast) as session:
        connection, token, thoughts = await _leave_something(session, root)
    holdfast.kill_daemon()
    holdfast.serve()
    async with after.connect(holdfast) as session:
        assert (await session.init("get_state"))["connection"]["session_id"] != connection
        done = await session.call("reconnect_session", session_id=connection, reconnect_token=token)
        assert (done["success"], done["session_id"], done["reconnect_count"]) == (True, connection, 1)
        assert root in done["restored"] and thoughts in done["restored"]
        assert done["reconnect_token"] != token
        state = await session.init("get_state")
        assert (state["connection"]["session_id"], state["root"], state["rootFrom"]) == (connection, root, "bound")
        reply = await session.think("and goes on")
        assert (reply["sessionId"], reply["thoughtNumber"]) == (thoughts, 2)


async def test_a_modern_client_goes_on_over_http_by_its_headers(holdfast: Installation, project: Path) -> None:
    async with Way("stdio", "modern").connect(holdfast) as session:
        connection, token, thoughts = await _leave_something(session, project.as_uri())
    async with _modern(holdfast, connection, token) as call:
        reply = (await call("thought", thought="over HTTP", nextThoughtNeeded=True))["structuredContent"]
        assert (reply["sessionId"], reply["thoughtNumber"]) == (thoughts, 2)
        assert (await call("init", operation="get_state"))["structuredContent"]["boundRoot"] == project.as_uri()


async def test_a_used_token_is_answered_again_for_a_lost_reply_and_betrays_a_thief_later(
    holdfast: Installation, tmp_path: Path, project: Path
) -> None:
    clock = tmp_path / "clock"
    holdfast.run("stop")
    holdfast.settings["HOLDFAST_TEST_CLOCK"] = str(clock)
    holdfast.serve()
    way = Way("http", "legacy")
    async with way.connect(holdfast) as session:
        connection, first, _ = await _leave_something(session, project.as_uri())
    async with way.connect(holdfast) as session:

        async def reconnect(token: str) -> dict[str, Any]:
            return await session.call("reconnect_session", session_id=connection, reconnect_token=token)

        done = await reconnect(first)
        assert await reconnect(first) == done, "the reply was lost; the same answer again"
        clock.write_text("31000")
        second = await reconnect(done["reconnect_token"])
        assert (second["success"], second["reconnect_count"]) == (True, 2)
        assert (await reconnect(first))["reason"] == "token_reused"
        assert (await reconnect(second["reconnect_token"]))["reason"] == "token_mismatch", "all tokens were revoked"


async def test_a_token_lives_fifteen_minutes_and_a_long_lived_header_is_offered_a_new_one(
    holdfast: Installation, tmp_path: Path, project: Path
) -> None:
    clock = tmp_path / "clock"
    holdfast.run("stop")
    holdfast.settings["HOLDFAST_TEST_CLOCK"] = str(clock)
    holdfast.serve()
    async with _modern(holdfast) as call:
        connection, token = _token_of((await call("init", operation="get_state"))["structuredContent"])
    async with _modern(holdfast, connection, token) as call:
        clock.write_text(str(8 * 60_000))
        result = await call("init", operation="get_state")
        offered = result["_meta"]["holdfast/connection"]
        assert offered["session_id"] == connection and offered["expires_in_minutes"] == 15
        assert "connection" not in result["structuredContent"] or result["structuredContent"]["connection"] == {
            "session_id": connection
        }
        clock.write_text(str(16 * 60_000))
        expired = await call("init", operation="get_state")
        assert "token_expired" in expired["content"][0]["text"]
    async with _modern(holdfast, connection, offered["reconnect_token"]) as call:
        assert (await call("init", operation="get_state"))["structuredContent"]["connection"] == {
            "session_id": connection
        }


async def test_connections_rest_and_expire_and_only_then_refuse(tmp_path: Path, project: Path) -> None:
    holdfast = Installation(tmp_path / "holdfast")
    clock = tmp_path / "clock"
    holdfast.settings |= {"HOLDFAST_TEST_CLOCK": str(clock), "MCP_RECONNECT_TOKEN_EXPIRY": "1440"}
    try:
        holdfast.serve()
        async with _modern(holdfast) as call:
            connection, token = _token_of((await call("init", operation="get_state"))["structuredContent"])
        clock.write_text(str(6 * 60_000))
        await _until_state(holdfast, connection, "idle")
        async with _modern(holdfast, connection, token) as call:
            await call("init", operation="get_state")
        await _until_state(holdfast, connection, "active")
        holdfast.run("stop")
        holdfast.serve()
        await _until_state(holdfast, connection, "detached")
        clock.write_text(str(25 * 3_600_000 + 6 * 60_000))
        await _until_state(holdfast, connection, "expired")
        async with _modern(holdfast) as call:
            await call("init", operation="get_state")
            done = await call("reconnect_session", session_id=connection, reconnect_token=token)
            assert done["structuredContent"]["reason"] in ("token_expired", "session_already_disconnected")
    finally:
        holdfast.close()


async def _until_state(holdfast: Installation, connection: str, state: str) -> None:
    headers = {"Authorization": f"Bearer {holdfast.key()}"}
    async with httpx2.AsyncClient(base_url=holdfast.address(), headers=headers, timeout=60) as http:
        for _ in range(600):
            shown = (await http.get(f"/api/mcp/sessions/{connection}")).json()
            if shown["state"] == state:
                return
            await asyncio.sleep(0.1)
    raise TimeoutError(f"{shown['state']}, not {state}")


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_two_clients_alike_in_everything_never_see_each_other(
    holdfast: Installation, project: Path, era: str
) -> None:
    way = Way("http", era)
    async with way.connect(holdfast) as one, way.connect(holdfast) as two:
        a, b = (
            await one.init("start_new", mcpRootUri=project.as_uri()),
            await two.init("start_new", mcpRootUri=project.as_uri()),
        )
        mine, theirs = _token_of(a), _token_of(b)
        assert mine[0] != theirs[0]
        crossed = await one.call("reconnect_session", session_id=mine[0], reconnect_token=theirs[1])
        assert (crossed["success"], crossed["reason"]) == (False, "session_id_mismatch")
        if era == "legacy":
            assert (await one.think("mine"))["sessionId"] == a["session"]["id"]
            assert (await two.think("theirs"))["sessionId"] == b["session"]["id"]


async def test_another_machine_takes_up_a_connection_through_the_shared_store(tmp_path: Path, project: Path) -> None:
    from tests.postgres import fresh_database, postgres_server

    with postgres_server() as server:
        url = fresh_database(server)
        machines = [Installation(tmp_path / name) for name in ("one", "two")]
        try:
            for machine in machines:
                machine.settings["HOLDFAST_DATABASE_URL"] = url
                machine.serve()
            async with Way("http", "legacy").connect(machines[0]) as session:
                connection, token, thoughts = await _leave_something(session, project.as_uri())
            async with Way("stdio", "modern").connect(machines[1]) as session:
                done = await session.call("reconnect_session", session_id=connection, reconnect_token=token)
                assert done["success"] is True
                assert (await session.think("on the other machine"))["sessionId"] == thoughts
        finally:
            for machine in machines:
                machine.close()
