"""A reconnect that is refused says why and what to do, is counted, and leaves the client of a living session a way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.installation import Clocked, Installation, wait_until
from tests.postgres import fresh_database
from tests.process.agent import MODERN_META, Agent
from tests.shared_daemon import Guest

SIXTEEN_MINUTES = 16 * 60_000


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def clocked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clocked]:
    """A running Holdfast on each engine, for all tests here that let time pass."""
    installation = Clocked(tmp_path_factory.mktemp("refusals") / "holdfast")
    if request.param == "postgres":
        installation.settings["HOLDFAST_DATABASE_URL"] = fresh_database(request.getfixturevalue("postgres"), keep=True)
    try:
        installation.serve()
        yield installation
    finally:
        installation.close()


def _http(holdfast: Installation, key: str | None = None) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {key or holdfast.key()}"}
    return httpx2.Client(base_url=holdfast.address(), headers=headers, timeout=60)


def _call(http: httpx2.Client, tool: str, sent: dict[str, str] | None = None, **arguments: Any) -> dict[str, Any]:
    """Call a tool as a modern client, with these headers of its connection."""
    told = {
        "Accept": "application/json, text/event-stream",
        "Mcp-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    params = {"name": tool, "arguments": arguments, "_meta": MODERN_META}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    response = http.post("/mcp", headers={**told, **(sent or {})}, json=body)
    assert response.status_code == 200, response.text
    return dict(response.json()["result"])


def _connected(http: httpx2.Client, project: Path) -> dict[str, str]:
    """Make a connection; the headers that its client sends from now on."""
    made = _call(http, "init", operation="start_new", mcpRootUri=project.as_uri())
    return _headers(made["structuredContent"]["connection"])


def _offered(result: dict[str, Any]) -> dict[str, str]:
    """The new token that comes with an answer."""
    return dict(result.get("_meta", {}).get("holdfast/connection", {}))


def _headers(connection: dict[str, str]) -> dict[str, str]:
    return {"Holdfast-Session": connection["session_id"], "Holdfast-Token": connection["reconnect_token"]}


def _state(http: httpx2.Client, sent: dict[str, str]) -> dict[str, Any]:
    return _call(http, "init", sent, operation="get_state")


def test_a_revoked_connection_is_session_already_disconnected(shared: Guest, project: Path) -> None:
    with _http(shared) as http:
        sent = _connected(http, project)
        session, token = sent["Holdfast-Session"], sent["Holdfast-Token"]
        assert http.delete(f"/api/mcp/sessions/{session}").status_code == 204
        by_rest = http.post(f"/api/mcp/sessions/{session}/reconnect", json={"token": token})
        assert by_rest.json()["detail"] == "Reconnection failed: session_already_disconnected"
        by_tool = _call(http, "reconnect_session", session_id=session, reconnect_token=token)["structuredContent"]
        assert by_tool["reason"] == "session_already_disconnected"
        for step in (by_rest.json()["next_step"], by_tool["next_step"]):
            assert "load_context" in step and "/token" not in step, "a new token is not to be had"
        by_headers = _state(http, sent)
        assert "session_already_disconnected" in by_headers["content"][0]["text"] and not _offered(by_headers)


def test_a_caller_whose_connection_was_revoked_is_somebody_new_and_told_so(shared: Guest, project: Path) -> None:
    with Agent(shared, project) as agent, _http(shared) as http:
        first = agent.init("get_state")["connection"]
        assert http.delete(f"/api/mcp/sessions/{first['session_id']}").status_code == 204
        told: list[dict[str, Any]] = []

        def is_somebody_new() -> bool:
            told.append(agent.init("get_state").get("connection", {}))
            return "reconnect_token" in told[-1]

        wait_until(is_somebody_new, "it is told its new connection")
        assert told[-1]["session_id"] != first["session_id"]


def test_every_refused_reconnect_names_the_next_step(clocked: Clocked, project: Path) -> None:
    with _http(clocked) as http:
        mine, theirs = _connected(http, project), _connected(http, project)
        session, token = mine["Holdfast-Session"], mine["Holdfast-Token"]
        _refused(http, session, "no token", "invalid_token", "/token")
        _refused(http, session, theirs["Holdfast-Token"], "session_id_mismatch", "that came with this token")
        clocked.later(SIXTEEN_MINUTES)
        _refused(http, session, token, "token_expired", "/token")
        for _ in range(10):
            http.post(f"/api/mcp/sessions/{session}/reconnect", json={"token": "x"})
        limited = http.post(f"/api/mcp/sessions/{session}/reconnect", json={"token": "x"})
        assert limited.status_code == 429 and limited.json()["next_step"].startswith("Try again in ")


def _refused(http: httpx2.Client, session: str, token: str, reason: str, step: str) -> None:
    by_tool = _call(http, "reconnect_session", session_id=session, reconnect_token=token)["structuredContent"]
    by_rest = http.post(f"/api/mcp/sessions/{session}/reconnect", json={"token": token}).json()
    assert (by_tool["reason"], by_rest["detail"]) == (reason, f"Reconnection failed: {reason}")
    assert step in by_tool["next_step"] and by_tool["next_step"] == by_rest["next_step"]


def test_usage_counts_failed_reconnects(embedded: Installation, project: Path) -> None:
    def figures(http: httpx2.Client) -> tuple[int, int]:
        tools = {one["tool"]: one for one in http.get("/api/mcp/usage").json()["tools"]}
        one = tools.get("reconnect_session", {"calls": 0, "errors": 0})
        return one["calls"], one["errors"]

    embedded.serve()
    with _http(embedded) as http:
        sent = _connected(http, project)
        session, token = sent["Holdfast-Session"], sent["Holdfast-Token"]
        _call(http, "reconnect_session", session_id=session, reconnect_token="wrong")  # noqa: S106
        http.post(f"/api/mcp/sessions/{session}/reconnect", json={"token": "wrong"})
        done = _call(http, "reconnect_session", session_id=session, reconnect_token=token)["structuredContent"]
        http.post(f"/api/mcp/sessions/{session}/reconnect", json={"token": done["reconnect_token"]})
        wait_until(lambda: figures(http) == (4, 2), "each way is counted, failed or not")


def test_a_header_client_that_paused_gets_a_way_back_while_its_connection_lives(
    clocked: Clocked, project: Path
) -> None:
    other = clocked.run("key", "create", f"other-{clocked.home.parent.name}", "--scope", "admin").stdout.strip()
    with _http(clocked) as http, _http(clocked, other) as stranger:
        sent = _connected(http, project)
        clocked.later(SIXTEEN_MINUTES)
        refused = _state(http, sent)
        assert refused["isError"] and "token_expired" in refused["content"][0]["text"]
        again = _headers(_offered(refused))
        assert again["Holdfast-Session"] == sent["Holdfast-Session"]
        state = _state(http, again)["structuredContent"]
        assert state["connection"]["session_id"] == sent["Holdfast-Session"] and "session" in state

        assert not _offered(_state(stranger, sent)), "the token alone is not enough: the key is another one"
        by_rest = http.get(f"/api/mcp/sessions/{sent['Holdfast-Session']}/token").json()
        assert not _state(http, _headers(by_rest)).get("isError"), "as the refusal says"

        clocked.later(SIXTEEN_MINUTES)
        fresh = http.get(f"/api/mcp/sessions/{sent['Holdfast-Session']}/token").json()
        taken = _call(
            http, "reconnect_session", again, **{name: fresh[name] for name in ("session_id", "reconnect_token")}
        )
        assert taken["structuredContent"]["success"], "headers that are too old do not stand in the way"

        assert http.delete(f"/api/mcp/sessions/{sent['Holdfast-Session']}").status_code == 204
        gone = _state(http, again)
        assert "session_already_disconnected" in gone["content"][0]["text"] and not _offered(gone)


def test_a_header_client_that_lost_its_session_id_is_known_by_its_token(shared: Guest, project: Path) -> None:
    with _http(shared) as http:
        sent = _connected(http, project)
        alone = {"Holdfast-Token": sent["Holdfast-Token"]}
        connection = _state(http, alone)["structuredContent"]["connection"]
        assert connection == {"session_id": sent["Holdfast-Session"]}
        forged = {"Holdfast-Token": sent["Holdfast-Token"][:-4] + "AAAA"}
        assert "invalid_token" in _state(http, forged)["content"][0]["text"]
        assert "invalid_token" in _state(http, {"Holdfast-Token": "x"})["content"][0]["text"]
        assert "Holdfast-Token" in _state(http, {"Holdfast-Session": "x"})["content"][0]["text"]
