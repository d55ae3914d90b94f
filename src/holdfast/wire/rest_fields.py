"""Kinds of parameters that REST routes share: what a query's text must look like, and what it stands for."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

SESSION_ID = r"^[A-Za-z0-9-]{1,64}$"
MOST_AT_ONCE = 200

_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _whole_number(text: Any) -> Any:
    if not isinstance(text, str) or not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise ValueError("be a whole number")
    return int(text)


def _milliseconds(text: Any) -> int:
    if not isinstance(text, str) or not _TIME.fullmatch(text):
        raise ValueError("be a time such as 2026-01-31T12:00:00Z")
    # A leap second is the end of its minute to a clock that has none.
    text = re.sub(r":60(?=[.Zz+-])", ":59", text).upper().replace(" ", "T")
    try:
        return (datetime.fromisoformat(text) - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        raise ValueError("be a time that exists, such as 2026-01-31T12:00:00Z") from None


Limit = Annotated[
    int,
    Field(ge=1, le=MOST_AT_ONCE, description=f"how many at most, 1 to {MOST_AT_ONCE}"),
    BeforeValidator(_whole_number),
]
SessionId = Annotated[str, Field(pattern=SESSION_ID, description="a session id: 1 to 64 of A-Z a-z 0-9 -")]
RowCursor = Annotated[
    str | None, Field(pattern=r"^[1-9][0-9]{0,17}$", description="the next_cursor of the page before, unchanged")
]
Time = Annotated[
    int,
    BeforeValidator(_milliseconds),
    WithJsonSchema({"type": "string", "format": "date-time", "description": "a time such as 2026-01-31T12:00:00Z"}),
]
"""An ISO 8601 time with its zone, as milliseconds."""
