"""Connections as REST clients see them, where a connection is called a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from holdfast.connections.model import Connection, Issued, State, ToolCall
from holdfast.connections.model import Reconnected as Done
from holdfast.connections.results import AuditLine, ToolFigures
from holdfast.connections.views import issued_view
from holdfast.times import iso
from holdfast.wire.http.fields import SESSION_ID
from holdfast.wire.http.rest import ResponseModel

CURSOR = r"^[0-9]{1,18}\." + SESSION_ID.removeprefix("^")


class Session(ResponseModel):
    """One caller, across its reconnects."""

    session_id: str
    state: State
    transport: str
    era: str
    client_name: str | None = None
    client_version: str | None = None
    agent_session: str | None = None
    principal: str | None = None
    root: str | None = None
    bound_root: str | None = None
    reasoning_session: str | None = None
    reconnect_count: int
    created_at: str
    last_seen: str


class Sessions(ResponseModel):
    """A page of sessions."""

    sessions: list[Session]
    next_cursor: str | None = None


class Request(ResponseModel):
    """One tool call."""

    tool: str
    at: str
    duration_ms: float
    outcome: str


class Requests(ResponseModel):
    """A page of tool calls."""

    requests: list[Request]
    next_cursor: str | None = None


class ToolUsage(ResponseModel):
    """The figures of one tool."""

    tool: str
    calls: int
    errors: int
    mean_ms: float
    max_ms: float


class Usage(ResponseModel):
    """The figures of every tool that was called."""

    tools: list[ToolUsage]


class AuditEntry(ResponseModel):
    """One attempt, and how it ended."""

    at: str
    action: str
    outcome: str
    session_id: str | None = None
    address: str | None = None
    client: str | None = None
    principal: str | None = None
    times: int


class Audit(ResponseModel):
    """A page of the audit."""

    entries: list[AuditEntry]
    next_cursor: str | None = None


class Token(ResponseModel):
    """A reconnect token."""

    session_id: str
    reconnect_token: str
    expires_in_minutes: int


class Reconnected(Token):
    """A session that was taken up again."""

    success: bool
    message: str
    reconnect_count: int


def session(connection: Connection) -> Session:
    # The model has no field for the identity: anyone who knows it could pose as this caller.
    return Session(
        **asdict(connection)
        | {
            "session_id": connection.id,
            "root": connection.root_uri,
            "created_at": iso(connection.created_at),
            "last_seen": iso(connection.seen_at),
        }
    )


def sessions(page: Sequence[Connection], wanted: int) -> Sessions:
    """Show a page; one connection more than `wanted` means that there is another page."""
    shown = page[:wanted]
    more = f"{shown[-1].created_at}.{shown[-1].id}" if len(page) > wanted else None
    return Sessions(sessions=[session(each) for each in shown], next_cursor=more)


def cursor_of(text: str | None) -> tuple[int, str] | None:
    if text is None:
        return None
    created_at, _, last = text.partition(".")
    return int(created_at), last


def row_of(text: str | None) -> int | None:
    return None if text is None else int(text)


def requests(page: Sequence[ToolCall], wanted: int) -> Requests:
    shown = [
        Request(tool=call.tool, at=iso(call.at), duration_ms=call.duration_us / 1000, outcome=call.outcome)
        for call in page[:wanted]
    ]
    return Requests(requests=shown, next_cursor=_next_row(page, wanted))


def audit(page: Sequence[AuditLine], wanted: int) -> Audit:
    shown = [
        AuditEntry(**asdict(line) | {"at": iso(line.at), "session_id": line.connection_id}) for line in page[:wanted]
    ]
    return Audit(entries=shown, next_cursor=_next_row(page, wanted))


def usage(figures: Sequence[ToolFigures]) -> Usage:
    return Usage(
        tools=[
            ToolUsage(**asdict(one), mean_ms=round(one.mean_us / 1000, 3), max_ms=one.max_us / 1000) for one in figures
        ]
    )


def token(issued: Issued) -> Token:
    return Token(**issued_view(issued))


def reconnected(done: Done) -> Reconnected:
    return Reconnected(
        success=True,
        message="Session reconnected",
        reconnect_count=done.reconnect_count,
        **issued_view(done.issued),
    )


def _next_row(page: Sequence[ToolCall] | Sequence[AuditLine], wanted: int) -> str | None:
    return str(page[wanted - 1].row_id) if len(page) > wanted else None
