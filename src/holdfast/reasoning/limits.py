"""What a session and a thought may hold; anything else is refused with the field, the limit and the next step."""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.errors import BadInput
from holdfast.reasoning.model import Draft

MAX_THOUGHT_BYTES = 1024 * 1024
MAX_TITLE = 500
MAX_DOMAIN = 100
MAX_TAGS = 50
MAX_TAG = 100
MAX_QUERY = 1000
MAX_NUMBER = 1_000_000_000

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_NUMBER = re.compile(r"[0-9]{1,10}")
_PLACE = re.compile(r"([0-9]{1,10})(?:\.([0-9]{1,10}))?")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def text(field: str, value: str, limit: int) -> str:
    """Check that a text has 1 to `limit` characters and can be stored on both engines."""
    _storable(field, value)
    if not value.strip():
        raise BadInput(field, "is empty", recovery=f"Pass 1 to {limit} characters.")
    if len(value) > limit:
        raise BadInput(field, f"has {len(value)} characters; the limit is {limit}", recovery="Shorten it.")
    return value


def tags(values: Sequence[str]) -> tuple[str, ...]:
    """Check tags and remove repeated ones."""
    if len(values) > MAX_TAGS:
        raise BadInput("tags", f"holds {len(values)} tags; the limit is {MAX_TAGS}", recovery="Pass fewer.")
    return tuple(dict.fromkeys(text(f"tags[{place}]", value, MAX_TAG) for place, value in enumerate(values)))


def session_id(value: str, field: str = "sessionId") -> str:
    if not _ID.fullmatch(value):
        raise BadInput(
            field,
            "must be 1 to 64 of A-Z a-z 0-9 . _ -",
            recovery="init with operation list_sessions lists the ids.",
        )
    return value


def draft(value: Draft) -> Draft:
    _storable("thought", value.content)
    if not value.content.strip():
        raise BadInput("thought", "is empty", recovery="Pass the text of the thought.")
    size = len(value.content)
    if size * 4 > MAX_THOUGHT_BYTES:
        size = len(value.content.encode())
    if size > MAX_THOUGHT_BYTES:
        raise BadInput(
            "thought",
            f"has {size} bytes; the limit is {MAX_THOUGHT_BYTES} (1 MiB)",
            recovery="Split it into several thoughts.",
        )
    if value.branch_id is not None and not _ID.fullmatch(value.branch_id):
        raise BadInput("branchId", "must be 1 to 64 of A-Z a-z 0-9 . _ -", recovery="Choose another name.")
    for field, number in (("thoughtNumber", value.requested_number), ("totalThoughts", value.total)):
        if number is not None and not 1 <= number <= MAX_NUMBER:
            raise BadInput(field, f"is {number}; it must be 1 to {MAX_NUMBER}", recovery="Leave it out if unsure.")
    return value


def page_size(value: int | None, default: int, limit: int) -> int:
    if value is None:
        return default
    if not 1 <= value <= limit:
        raise BadInput("limit", f"is {value}; it must be 1 to {limit}")
    return value


def number_cursor(value: str | None) -> int | None:
    return None if value is None else int(cursor_parts(_NUMBER, value)[0])


def place_cursor(value: str | None) -> tuple[int, int] | None:
    """Parse a cursor of a thought's number and how many of its characters were returned already."""
    if value is None:
        return None
    parts = cursor_parts(_PLACE, value)
    return int(parts[1]), int(parts[2] or 0)


def cursor_parts(pattern: re.Pattern[str], value: str) -> re.Match[str]:
    """Match a cursor with the pattern of those that were given out."""
    match = pattern.fullmatch(value)
    if match is None:
        raise BadInput("cursor", "was not returned by an earlier call", recovery="Pass nextCursor of an earlier reply.")
    return match


def _storable(field: str, value: str) -> None:
    match = _UNSTORABLE.search(value)
    if match:
        what = "a NUL character" if match[0] == "\x00" else "half of a surrogate pair"
        raise BadInput(field, f"holds {what} at position {match.start()}", recovery="Remove it and repeat the call.")
