"""Parameter types that REST routes share, with their validation and conversion."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from holdfast.times import milliseconds

SESSION_ID = r"^[A-Za-z0-9-]{1,64}$"
MAX_AT_ONCE = 200


def whole_number(text: Any) -> Any:
    """Convert a query's text to a number."""
    if not isinstance(text, str) or not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise ValueError("be a whole number")
    return int(text)


def _milliseconds(text: Any) -> int:
    return milliseconds(text if isinstance(text, str) else "")


Limit = Annotated[
    int,
    Field(ge=1, le=MAX_AT_ONCE, description=f"how many at most, 1 to {MAX_AT_ONCE}"),
    BeforeValidator(whole_number),
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
