"""Connections as REST clients see them, where a connection is called a session, in the shapes that `client.py` has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import TypeVar

from holdfast.client import (
    Audit,
    AuditEntry,
    Reconnected,
    Request,
    Requests,
    Session,
    Sessions,
    Token,
    ToolUsage,
    Usage,
)
from holdfast.connections.model import Connection, Issued, ToolCall
from holdfast.connections.model import Reconnected as Done
from holdfast.connections.results import AuditLine, ToolFigures
from holdfast.connections.views import issued_view
from holdfast.times import iso
from holdfast.wire.http.fields import SESSION_ID

T = TypeVar("T")
CURSOR = r"^[0-9]{1,18}\." + SESSION_ID.removeprefix("^")


def session(connection: Connection) -> Session:
    # It has no field for the identity: anyone who knows it could pose as this caller.
    return _shaped(
        Session,
        asdict(connection),
        session_id=connection.id,
        root=connection.root_uri,
        created_at=iso(connection.created_at),
        last_seen=iso(connection.seen_at),
    )


def sessions(page: Sequence[Connection], wanted: int) -> Sessions:
    """Show a page; one connection more than `wanted` means that there is another page."""
    shown = page[:wanted]
    more = f"{shown[-1].created_at}.{shown[-1].id}" if len(page) > wanted else None
    return Sessions(tuple(session(each) for each in shown), more)


def cursor_of(text: str | None) -> tuple[int, str] | None:
    if text is None:
        return None
    created_at, _, last = text.partition(".")
    return int(created_at), last


def row_of(text: str | None) -> int | None:
    return None if text is None else int(text)


def requests(page: Sequence[ToolCall], wanted: int) -> Requests:
    shown = tuple(
        Request(tool=call.tool, at=iso(call.at), duration_ms=call.duration_us / 1000, outcome=call.outcome)
        for call in page[:wanted]
    )
    return Requests(requests=shown, next_cursor=_next_row(page, wanted))


def audit(page: Sequence[AuditLine], wanted: int) -> Audit:
    shown = (
        _shaped(AuditEntry, asdict(line), at=iso(line.at), session_id=line.connection_id) for line in page[:wanted]
    )
    return Audit(entries=tuple(shown), next_cursor=_next_row(page, wanted))


def usage(figures: Sequence[ToolFigures]) -> Usage:
    return Usage(
        tuple(
            _shaped(ToolUsage, asdict(one), mean_ms=round(one.mean_us / 1000, 3), max_ms=one.max_us / 1000)
            for one in figures
        )
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


def _shaped(shape: Callable[..., T], values: Mapping[str, object], **others: object) -> T:
    """Return what a shape has fields for; anything else stays here."""
    known = {field.name for field in fields(shape)}  # type: ignore[arg-type]
    return shape(**{name: value for name, value in {**values, **others}.items() if name in known})


def _next_row(page: Sequence[ToolCall] | Sequence[AuditLine], wanted: int) -> str | None:
    return str(page[wanted - 1].row_id) if len(page) > wanted else None
