"""A client that comes back gets its own connection back, with everything attached to it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.installation import Clocked, Installation
from tests.postgres import PostgresServer, fresh_database
from tests.process.agent import MODERN_META, Agent
from tests.process.clients import Session, Way
from tests.shared_daemon import Guest

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def clocked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clocked]:
    """A running Holdfast on each engine, for all tests here that let time pass: it passes for each from where it is."""
    installation = Clocked(tmp_path_factory.mktemp("clocked") / "holdfast")
    if request.param == "postgres":
        installation.settings["HOLDFAST_DATABASE_URL"] = fresh_database(request.getfixturevalue("postgres"), keep=True)
    try:
        installation.serve()
        yield installation
    finally:
        installation.close()


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
    shared: Guest, project: Path
) -> None:
    root = project.as_uri()
    async with _modern(shared) as call:
        thought = await call("thought", thought="by nobody", nextThoughtNeeded=True)
        assert "connection" not in thought["structuredContent"]
        assert "holdfast/connection" not in thought.get("_meta", {})
        first = (await call("init", operation="start_new", mcpRootUri=root))["structuredContent"]
        another = (await call("init", operation="start_new", mcpRootUri=root))["structuredContent"]
    mine, theirs = _token_of(first), _token_of(another)
    assert mine[0] != theirs[0]
    async with _modern(shared, *mine) as call:
        bound = await call("init", operation="bind_root", mcpRootUri=root)
        assert bound["structuredContent"]["success"] is True
        reply = (await call("thought", thought="by headers", nextThoughtNeeded=True))["structuredContent"]
        assert reply["sessionId"] == first["session"]["id"]
        state = (await call("init", operation="get_state"))["structuredContent"]
        assert (state["connection"]["session_id"], state["boundRoot"]) == (mine[0], root)
        assert "connection" not in reply, "a fresh token is not renewed"
    async with _modern(shared, mine[0], theirs[1]) as call:
        refused = await call("thought", thought="with another's token", nextThoughtNeeded=True)
        assert refused["isError"] is True
        assert "session_id_mismatch" in refused["content"][0]["text"]


async def test_only_a_tool_call_makes_a_connection(shared: Guest, way: Way, project: Path) -> None:
    before = await _connections(shared)

    async def made() -> int:
        return len(await _connections(shared) - before)

    async with way.connect(shared, cwd=str(project)) as session:
        await session.client.list_tools()
        await session.client.list_resources()
        refused = await session.call("reconnect_session", session_id=shared.caller("nobody"), reconnect_token="x")  # noqa: S106
        assert (refused["success"], refused["reason"]) == (False, "invalid_token")
        assert refused["message"] == "Reconnection failed: invalid_token"
        assert await made() == 0
        await session.init("get_state")
        assert await made() == 1
        await session.init("list_roots")
        assert await made() == (2 if str(way) == "http-modern" else 1)


async def _connections(holdfast: Installation) -> set[str]:
    """The newest connections; whatever a test makes is among them."""
    headers = {"Authorization": f"Bearer {holdfast.key()}"}
    async with httpx2.AsyncClient(base_url=holdfast.address(), headers=headers, timeout=60) as http:
        shown = (await http.get("/api/mcp/sessions", params={"limit": 200})).json()["sessions"]
    return {session["session_id"] for session in shown}


async def test_an_agent_with_a_session_id_of_its_own_never_sees_a_token(shared: Guest, project: Path) -> None:
    with Agent(shared, project, session="known") as agent:
        names = [tool["name"] for tool in agent.request("tools/list")["tools"]]
        assert "reconnect_session" not in names
        result = agent.request("tools/call", {"name": "init", "arguments": {"operation": "get_state"}})
        assert "token" not in json.dumps(result)
        connection = result["structuredContent"]["connection"]["session_id"]
    with Agent(shared, project, session="known") as agent:
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


async def test_clients_go_on_over_another_transport_after_a_crash(
    holdfast: Installation, project: Path, tmp_path: Path
) -> None:
    """All of them over one crash: each has a project of its own, and a crash is the same for all."""
    with Agent(holdfast, project, session="known") as agent:
        known = agent.init("get_state")["connection"]
    left: list[tuple[Way, str, tuple[str, str, str]]] = []
    for number, (before, after) in enumerate(PAIRS):
        root = (tmp_path / f"project-{number}").as_uri()
        async with before.connect(holdfast) as session:
            left.append((after, root, await _leave_something(session, root)))
    killed = holdfast.kill_daemon()
    holdfast.serve(another_than=killed)
    for after, root, (connection, token, thoughts) in left:
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
    with Agent(holdfast, project, session="known") as agent:
        assert agent.init("get_state")["connection"] == known, "an agent known by its own session id needs no token"


async def test_a_modern_client_goes_on_over_http_by_its_headers(shared: Guest, project: Path) -> None:
    async with Way("stdio", "modern").connect(shared) as session:
        connection, token, thoughts = await _leave_something(session, project.as_uri())
    async with _modern(shared, connection, token) as call:
        reply = (await call("thought", thought="over HTTP", nextThoughtNeeded=True))["structuredContent"]
        assert (reply["sessionId"], reply["thoughtNumber"]) == (thoughts, 2)
        assert (await call("init", operation="get_state"))["structuredContent"]["boundRoot"] == project.as_uri()


async def test_a_used_token_is_answered_again_for_a_lost_reply_and_betrays_a_thief_later(
    clocked: Clocked, project: Path
) -> None:
    way = Way("http", "legacy")
    async with way.connect(clocked) as session:
        connection, first, _ = await _leave_something(session, project.as_uri())
    async with way.connect(clocked) as session:

        async def reconnect(token: str) -> dict[str, Any]:
            return await session.call("reconnect_session", session_id=connection, reconnect_token=token)

        done = await reconnect(first)
        assert await reconnect(first) == done, "the reply was lost; the same answer again"
        clocked.later(31_000)
        second = await reconnect(done["reconnect_token"])
        assert (second["success"], second["reconnect_count"]) == (True, 2)
        assert (await reconnect(first))["reason"] == "token_reused"
        assert (await reconnect(second["reconnect_token"]))["reason"] == "token_mismatch", "all tokens were revoked"


async def test_a_token_lives_fifteen_minutes_and_a_long_lived_header_is_offered_a_new_one(clocked: Clocked) -> None:
    async with _modern(clocked) as call:
        connection, token = _token_of((await call("init", operation="get_state"))["structuredContent"])
    async with _modern(clocked, connection, token) as call:
        clocked.later(8 * 60_000)
        result = await call("init", operation="get_state")
        offered = result["_meta"]["holdfast/connection"]
        assert offered["session_id"] == connection and offered["expires_in_minutes"] == 15
        assert "connection" not in result["structuredContent"] or result["structuredContent"]["connection"] == {
            "session_id": connection
        }
        clocked.later(8 * 60_000)
        expired = await call("init", operation="get_state")
        assert "token_expired" in expired["content"][0]["text"]
    async with _modern(clocked, connection, offered["reconnect_token"]) as call:
        assert (await call("init", operation="get_state"))["structuredContent"]["connection"] == {
            "session_id": connection
        }


OFTEN = """
import sys
from holdfast.daemon import daemon
from holdfast.cli import main
daemon.REST_SECONDS = 0.2
sys.exit(main(["serve"]))
"""
"""`holdfast serve`, which looks every moment which connections rest and expire."""


@pytest.mark.parametrize(
    "command",
    [
        pytest.param([sys.executable, "-c", OFTEN], id="looking-often"),
        pytest.param(None, id="as-it-is", marks=pytest.mark.long),  # waits for two of its looks, 15 s apart
    ],
)
async def test_connections_rest_and_expire_and_only_then_refuse(tmp_path: Path, command: list[str] | None) -> None:
    holdfast = Clocked(tmp_path / "holdfast")
    holdfast.settings |= {"MCP_RECONNECT_TOKEN_EXPIRY": "1440"}
    holdfast.daemon_command = command or holdfast.daemon_command
    try:
        holdfast.serve()
        async with _modern(holdfast) as call:
            connection, token = _token_of((await call("init", operation="get_state"))["structuredContent"])
        holdfast.later(6 * 60_000)
        await _until_state(holdfast, connection, "idle")
        async with _modern(holdfast, connection, token) as call:
            await call("init", operation="get_state")
        await _until_state(holdfast, connection, "active")
        holdfast.run("stop")
        holdfast.serve()
        await _until_state(holdfast, connection, "detached")
        holdfast.later(25 * 3_600_000)
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
        for _ in range(1200):
            shown = (await http.get(f"/api/mcp/sessions/{connection}")).json()
            if shown["state"] == state:
                return
            await asyncio.sleep(0.05)
    raise TimeoutError(f"{shown['state']}, not {state}")


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_two_clients_alike_in_everything_never_see_each_other(shared: Guest, project: Path, era: str) -> None:
    way = Way("http", era)
    async with way.connect(shared) as one, way.connect(shared) as two:
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


async def test_another_machine_takes_up_a_connection_through_the_shared_store(
    postgres: PostgresServer, tmp_path: Path, project: Path
) -> None:
    url = fresh_database(postgres)
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
