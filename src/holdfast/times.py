"""Time is milliseconds inside and ISO 8601 outside."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
YEAR_10000 = 253_402_300_800_000
"""No time that can be told is as late; in milliseconds."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(ms: int) -> str:
    """Return a time as ISO 8601 in UTC with milliseconds."""
    seconds, rest = divmod(ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat()[:19]}.{rest:03}Z"  # a third of the time of a format


def local(text: str) -> str:
    """Return an ISO 8601 time as a person's clock shows it, to the minute."""
    return f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M}"


def milliseconds(text: str) -> int:
    """Return an ISO 8601 time with its zone, as milliseconds; ValueError says what it must be."""
    if not _TIME.fullmatch(text):
        raise ValueError("be a time such as 2026-01-31T12:00:00Z")
    # A leap second is the end of its minute to a clock that has none.
    text = re.sub(r":60(?=[.Zz+-])", ":59", text).upper().replace(" ", "T")
    try:
        return (datetime.fromisoformat(text) - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        raise ValueError("be a time that exists, such as 2026-01-31T12:00:00Z") from None
