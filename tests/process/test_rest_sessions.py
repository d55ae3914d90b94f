"""Sessions over REST on a real daemon: reconnecting as the first users were promised, and every route by the client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from tests.installation import Clocked, Installation, wait_until
from tests.postgres import fresh_database
from tests.process.agent import Agent
from tests.shared_daemon import Guest

from holdfast.client import Client, RestError

SIXTEEN_MINUTES = 16 * 60_000


@pytest.fixture(params=["sqlite", "postgres"])
def clocked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Clocked]:
    """A running Holdfast of this test's own on each engine, in which it lets time pass."""
    installation = Clocked(tmp_path / "holdfast")
    if request.param == "postgres":
        installation.settings["HOLDFAST_DATABASE_URL"] = fresh_database(request.getfixturevalue("postgres"))
    try:
        installation.serve()
        yield installation
    finally:
        installation.close()


def _rest(holdfast: Installation) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {holdfast.key()}"}
    return httpx2.Client(base_url=holdfast.address(), headers=headers, timeout=60)


def _client(holdfast: Installation) -> Client:
    return Client(holdfast.address(), holdfast.key(), timeout=60)


def _killed(holdfast: Installation) -> None:
    pid = holdfast.kill_daemon()
    holdfast.serve(another_than=pid)


def _left_alone(holdfast: Installation) -> None:
    return


def _reconnect_as_promised(holdfast: Clocked, between: Callable[[Installation], None]) -> None:
    """The four tests that reconnecting was first specified by, with something happening in between."""
    with _rest(holdfast) as http:
        session = http.get("/api/mcp/sessions/active").json()["sessions"][0]["session_id"]
        given = http.get(f"/api/mcp/sessions/{session}/token")
        token = given.json()["reconnect_token"]
        assert given.json() == {"session_id": session, "reconnect_token": token, "expires_in_minutes": 15}
        assert given.headers["cache-control"] == "no-store"

    between(holdfast)
    with _rest(holdfast) as http:
        taken = http.post(f"/api/mcp/sessions/{session}/reconnect", json={"token": token})
        assert taken.status_code == 200
        promised = {"success": True, "session_id": session, "message": "Session reconnected"}
        assert promised.items() <= taken.json().items()
        assert taken.json()["reconnect_count"] == 1
        assert taken.json()["reconnect_token"] != token
        assert taken.headers["cache-control"] == "no-store"

    between(holdfast)
    holdfast.later(SIXTEEN_MINUTES)
    with _rest(holdfast) as http:
        for old in (token, taken.json()["reconnect_token"]):
            late = http.post(f"/api/mcp/sessions/{session}/reconnect", json={"token": old})
            assert (late.status_code, late.json()["detail"]) == (401, "Reconnection failed: token_expired")
        wrong = http.post(f"/api/mcp/sessions/{session}/reconnect", json={"token": "invalid-token"})
        assert (wrong.status_code, wrong.json()["detail"]) == (401, "Reconnection failed: invalid_token")


def test_reconnecting_works_as_it_was_first_specified_also_over_kill_nine(clocked: Clocked, project: Path) -> None:
    with Agent(clocked, project) as agent:
        agent.think("the first call makes the session")
        _reconnect_as_promised(clocked, _left_alone)
    with Agent(clocked, project) as agent:
        agent.think("and another agent's makes another")
    _reconnect_as_promised(clocked, _killed)


def test_the_client_reaches_every_route(holdfast: Installation, project: Path) -> None:
    client = _client(holdfast)
    assert client.healthz().status == "ok"
    assert client.active_sessions().sessions == ()
    with Agent(holdfast, project, session="first") as agent:
        agent.think("one")
        agent.refused("thought", thought="two", nextThoughtNeeded=True, sessionId="nowhere")
    with Agent(holdfast, project, session="second") as agent:
        agent.think("three")

    newest, oldest = client.active_sessions().sessions
    assert (newest.agent_session, oldest.agent_session) == ("second", "first")
    assert (oldest.transport, oldest.era, oldest.client_name) == ("relay", "legacy", "test-agent")
    assert oldest.root == project.as_uri()
    page = client.sessions(limit=1)
    assert [each.session_id for each in page.sessions] == [newest.session_id]
    rest = client.sessions(limit=1, cursor=page.next_cursor)
    assert [each.session_id for each in rest.sessions] == [oldest.session_id]
    assert rest.next_cursor is None
    assert client.session(oldest.session_id).reasoning_session == oldest.reasoning_session

    wait_until(lambda: len(client.requests(oldest.session_id).requests) == 2, "both calls are counted")
    last = client.requests(oldest.session_id, limit=1)
    assert (last.requests[0].tool, last.requests[0].outcome != "ok") == ("thought", True)
    first = client.requests(oldest.session_id, cursor=last.next_cursor)
    assert [(each.tool, each.outcome) for each in first.requests] == [("thought", "ok")]
    wait_until(lambda: sum(tool.calls for tool in client.usage().tools) == 3, "every call is counted")
    (figures,) = client.usage(since="2020-01-01T00:00:00Z").tools
    assert (figures.tool, figures.calls, figures.errors) == ("thought", 3, 1)
    assert client.usage(since="2999-01-01T00:00:00+01:00").tools == ()

    token = client.get_token(oldest.session_id)
    assert client.issue_token(oldest.session_id).reconnect_token != token.reconnect_token
    taken = client.reconnect(oldest.session_id, token.reconnect_token)
    assert (taken.success, taken.reconnect_count, taken.session_id) == (True, 1, oldest.session_id)
    with pytest.raises(RestError) as other:
        client.reconnect(newest.session_id, taken.reconnect_token)
    assert (other.value.status, other.value.detail) == (401, "Reconnection failed: session_id_mismatch")

    client.revoke(oldest.session_id)
    assert [each.session_id for each in client.active_sessions().sessions] == [newest.session_id]
    assert [each.state for each in client.sessions().sessions][1] == "revoked"
    for gone in (client.session, client.requests):
        with pytest.raises(RestError, match="Session not found"):
            gone(oldest.session_id)
    with pytest.raises(RestError) as inactive:
        client.get_token(oldest.session_id)
    assert (inactive.value.status, inactive.value.detail) == (400, "Cannot generate token for inactive session")

    entries = client.audit().entries
    told = [(each.action, each.outcome) for each in reversed(entries)]
    issued = ("token.issue", "ok")
    assert told == [issued, issued, ("reconnect", "ok"), ("reconnect", "session_id_mismatch"), ("revoke", "ok")]
    assert {(each.principal, each.address) for each in entries} == {("owner", "127.0.0.1")}
    assert all((each.client or "").startswith("holdfast-client/") for each in entries)
    assert [each.action for each in client.audit(session_id=newest.session_id).entries] == ["reconnect"]
    pages = client.audit(limit=4)
    assert len(pages.entries) == 4
    assert [each.action for each in client.audit(cursor=pages.next_cursor).entries] == ["token.issue"]
    for token_text in (token.reconnect_token, taken.reconnect_token):
        assert token_text not in str(entries)
    assert client.openapi()["openapi"] == "3.1.0"


def test_a_session_that_is_not_there_is_a_404_for_everything_but_a_token(shared_embedded: Guest) -> None:
    client = _client(shared_embedded)
    for ask in (client.session, client.requests, client.get_token, client.issue_token, client.revoke):
        with pytest.raises(RestError) as error:
            ask("no-such-session")
        assert (error.value.status, error.value.detail) == (404, "Session not found")


def _session_of(holdfast: Installation, project: Path) -> str:
    """The session of a new agent in this project, who is gone again."""
    with Agent(holdfast, project) as agent:
        return str(agent.init("get_state")["connection"]["session_id"])


def test_guessing_is_slowed_down_and_told_when_to_come_back(shared_embedded: Guest, project: Path) -> None:
    # With a key of its own: guesses are counted per key too, and the owner's is every test's.
    made = shared_embedded.run("key", "create", shared_embedded.caller("guesser"), "--scope", "admin")
    client = Client(shared_embedded.address(), made.stdout.strip(), timeout=60)
    session = _session_of(shared_embedded, project)
    good = client.get_token(session).reconnect_token

    def guess() -> RestError:
        with pytest.raises(RestError) as refused:
            client.reconnect(session, "a-guess")
        return refused.value

    answers = [guess() for _ in range(12)]
    assert [each.status for each in answers] == sorted(each.status for each in answers)
    limited = answers[-1]
    assert (limited.status, limited.detail) == (429, "Reconnection failed: rate_limited")
    assert limited.retry_after is not None and 1 <= limited.retry_after <= 60
    with pytest.raises(RestError, match="rate_limited"):
        client.reconnect(session, good)
    # What is limited is that one connection; nobody else is made to wait.
    with pytest.raises(RestError, match="invalid_token"):
        client.reconnect(shared_embedded.caller("another-session"), "a-guess")


def test_no_answer_tells_how_a_transport_identifies_a_caller(shared_embedded: Guest, project: Path) -> None:
    with Agent(shared_embedded, project, session="known-by-this") as agent:
        agent.think("one")
    with _rest(shared_embedded) as http:
        shown = http.get("/api/mcp/sessions").json()["sessions"]
    (session,) = [each for each in shown if each.get("root") == project.as_uri()]
    assert "identity" not in session and "joined" not in session and "pid" not in session
    assert all(value is not None for value in session.values())
    assert session["created_at"].endswith("Z") and "T" in session["last_seen"]
