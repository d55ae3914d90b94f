"""Time is milliseconds inside and ISO 8601 outside."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(ms: int) -> str:
    """A time as ISO 8601 in UTC with milliseconds."""
    seconds, rest = divmod(ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03}Z"
