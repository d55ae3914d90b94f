"""Connections over REST: who is connected, taking a connection up again, tokens, usage and audit."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Annotated

from pydantic import Field

from holdfast import client
from holdfast.connections import rest_models
from holdfast.connections.keys import Scope
from holdfast.connections.model import Attempt, Connection, Reason, Refused, State
from holdfast.connections.service import Connections
from holdfast.connections.tokens import MAX_LENGTH
from holdfast.errors import NotFound
from holdfast.wire.http.fields import SESSION_ID, Limit, RowCursor, SessionId, Time
from holdfast.wire.http.rest import Answer, Problem, Reply, RequestModel, RestRequest, RestRoute

BASE = "/api/mcp"
SESSION = f"{BASE}/sessions/{{session_id}}"
NO_STORE = {"Cache-Control": "no-store"}
NO_SUCH_SESSION = Answer("There is no such session.", Problem)
GONE = Answer("There is no such session, or it was revoked.", Problem)


class OneSession(RequestModel):
    """Which session."""

    session_id: SessionId


class SessionsPage(RequestModel):
    """Which part of the sessions."""

    limit: Limit = 50
    cursor: Annotated[
        str | None, Field(pattern=rest_models.CURSOR, description="the next_cursor of the page before, unchanged")
    ] = None


class RowsPage(RequestModel):
    """Which part of a list."""

    limit: Limit = 50
    cursor: RowCursor = None


class AuditPage(RowsPage):
    """Which part of the audit."""

    session_id: Annotated[str | None, Field(pattern=SESSION_ID, description="a session id")] = None


class UsagePeriod(RequestModel):
    """Which calls are counted."""

    since: Time | None = None


class ReconnectBody(RequestModel):
    """What a client presents to be itself again."""

    token: Annotated[str, Field(min_length=1, max_length=MAX_LENGTH)]


class ReconnectProblem(Problem):
    """Why a session was not taken up, and what to do."""

    next_step: str | None = None
    """Omitted if the key is missing."""


def routes(connections: Connections) -> list[RestRoute]:
    routes = [*_reading(connections), *_figures(connections), *_changing(connections)]
    return [replace(route, tag="connections") for route in routes]


def _reading(connections: Connections) -> list[RestRoute]:
    async def page(request: RestRequest, *, ended: bool) -> Reply:
        wanted = request.query.limit
        before = rest_models.cursor_of(request.query.cursor)
        page = await connections.newest(ended=ended, before=before, limit=wanted + 1)
        return Reply(rest_models.sessions(page, wanted))

    async def one(request: RestRequest) -> Reply:
        return Reply(rest_models.session(await _still_there(connections, request)))

    listed = {200: Answer("A page of sessions, the newest first.", client.Sessions)}
    return [
        RestRoute(
            "GET", f"{BASE}/sessions", "sessions", "All sessions", partial(page, ended=True), listed, query=SessionsPage
        ),
        RestRoute(
            "GET",
            f"{BASE}/sessions/active",
            "active_sessions",
            "Sessions that neither expired nor were revoked",
            partial(page, ended=False),
            listed,
            query=SessionsPage,
        ),
        RestRoute(
            "GET",
            SESSION,
            "session",
            "One session",
            one,
            {200: Answer("The session.", client.Session), 404: GONE},
            path_params=OneSession,
        ),
    ]


def _figures(connections: Connections) -> list[RestRoute]:
    async def requests(request: RestRequest) -> Reply:
        connection = await _still_there(connections, request)
        query = request.query
        calls = await connections.requests(connection.id, rest_models.row_of(query.cursor), query.limit + 1)
        return Reply(rest_models.requests(calls, query.limit))

    async def usage(request: RestRequest) -> Reply:
        return Reply(rest_models.usage(await connections.usage_by_tool(request.query.since)))

    async def audit(request: RestRequest) -> Reply:
        query = request.query
        lines = await connections.audit_lines(query.session_id, rest_models.row_of(query.cursor), query.limit + 1)
        return Reply(rest_models.audit(lines, query.limit))

    return [
        RestRoute(
            "GET",
            f"{SESSION}/requests",
            "requests",
            "A session's tool calls",
            requests,
            {200: Answer("A page of calls, the newest first.", client.Requests), 404: GONE},
            path_params=OneSession,
            query=RowsPage,
        ),
        RestRoute(
            "GET",
            f"{BASE}/usage",
            "usage",
            "How often each tool was called, and how long it took",
            usage,
            {200: Answer("The figures of each tool, the most called first.", client.Usage)},
            query=UsagePeriod,
        ),
        RestRoute(
            "GET",
            "/api/audit",
            "audit",
            "Who tried to take up which session, and how that ended",
            audit,
            {200: Answer("A page of entries, the newest first.", client.Audit)},
            query=AuditPage,
        ),
    ]


def _changing(connections: Connections) -> list[RestRoute]:
    async def reconnect(request: RestRequest) -> Reply:
        began = time.perf_counter()
        done = await connections.reconnects.reconnect(request.path.session_id, request.body.token, _attempt(request))
        taken, outcome = (None, "error") if isinstance(done, Refused) else (request.path.session_id, "ok")
        connections.usage.count(taken, "reconnect_session", time.perf_counter() - began, outcome)
        return _refused(done) if isinstance(done, Refused) else Reply(rest_models.reconnected(done), headers=NO_STORE)

    async def token(request: RestRequest) -> Reply:
        issued = await connections.reconnects.issue(request.path.session_id, _attempt(request))
        return Reply(rest_models.token(issued), headers=NO_STORE)

    async def revoke(request: RestRequest) -> Reply:
        if not await connections.reconnects.revoke(request.path.session_id, _attempt(request)):
            raise NotFound("Session not found")
        return Reply(None, 204)

    token_answers = {
        200: Answer(
            "A new token; earlier ones stay good.",
            client.Token,
            {"Cache-Control": "no-store: a token is a secret"},
        ),
        400: Answer("The session expired or was revoked.", Problem),
        404: NO_SUCH_SESSION,
    }
    token_path = f"{SESSION}/token"
    return [
        RestRoute(
            "POST",
            f"{SESSION}/reconnect",
            "reconnect",
            "Take up a session by its token, which is used up",
            reconnect,
            {
                200: Answer("The session is taken up; here is its next token.", client.Reconnected),
                401: Answer(
                    "The key is missing, or the token was refused: Reconnection failed: <reason>, with the next step.",
                    ReconnectProblem,
                    {"WWW-Authenticate": "Bearer"},
                ),
                429: Answer("Too many failed attempts.", ReconnectProblem, {"Retry-After": "seconds to wait"}),
            },
            scope=Scope.ADMIN,
            path_params=OneSession,
            body=ReconnectBody,
            hands_out_token=True,
        ),
        *(
            RestRoute(
                method,
                token_path,
                name,
                summary,
                token,
                token_answers,
                scope=Scope.ADMIN,
                path_params=OneSession,
                hands_out_token=True,
            )
            for method, name, summary in (
                ("GET", "get_token", "A reconnect token for a session"),
                ("POST", "issue_token", "A reconnect token for a session, as GET gives it"),
            )
        ),
        RestRoute(
            "DELETE",
            SESSION,
            "revoke",
            "End a session and all its tokens",
            revoke,
            {204: Answer("It is revoked."), 404: NO_SUCH_SESSION},
            scope=Scope.ADMIN,
            path_params=OneSession,
        ),
    ]


async def _still_there(connections: Connections, request: RestRequest) -> Connection:
    """Return the connection, unless it was revoked; lists and the audit still show those."""
    connection = await connections.get(request.path.session_id)
    if connection is None or connection.state == State.REVOKED:
        raise NotFound("Session not found")
    return connection


def _attempt(request: RestRequest) -> Attempt:
    return Attempt(request.address, request.client, request.key.name if request.key else None)


def _refused(refused: Refused) -> Reply:
    problem = ReconnectProblem(detail=f"Reconnection failed: {refused.reason.value}", next_step=refused.next_step)
    if refused.reason is Reason.RATE_LIMITED:
        return Reply(problem, 429, {"Retry-After": str(refused.retry_after_s or 1)})
    return Reply(problem, 401, {"WWW-Authenticate": 'Bearer error="invalid_token"'})
