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

_SESSION_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_BRANCH_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_PLACE = re.compile(r"([0-9]{1,10})(?:\.([0-9]{1,10}))?")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def text(field: str, value: str, limit: int) -> str:
    """A text of 1 to `limit` characters that both engines can store."""
    _storable(field, value)
    if not value.strip():
        raise BadInput(field, "is empty", recovery=f"Pass 1 to {limit} characters.")
    if len(value) > limit:
        raise BadInput(field, f"has {len(value)} characters; the limit is {limit}", recovery="Shorten it.")
    return value


def title(value: str) -> str:
    """A session's title."""
    return text("title", value, MAX_TITLE)


def domain(value: str) -> str:
    """A session's field of work."""
    return text("domain", value, MAX_DOMAIN)


def query(value: str) -> str:
    """What to search for."""
    return text("query", value, MAX_QUERY)


def tags(values: Sequence[str]) -> tuple[str, ...]:
    """A session's tags, each one once."""
    if len(values) > MAX_TAGS:
        raise BadInput("tags", f"holds {len(values)} tags; the limit is {MAX_TAGS}", recovery="Pass fewer.")
    return tuple(dict.fromkeys(text(f"tags[{place}]", value, MAX_TAG) for place, value in enumerate(values)))


def session_id(value: str, field: str = "sessionId") -> str:
    """The id of a session."""
    if not _SESSION_ID.fullmatch(value):
        raise BadInput(
            field,
            "must be 1 to 64 of A-Z a-z 0-9 . _ -",
            recovery="init with operation list_sessions lists the ids.",
        )
    return value


def draft(value: Draft) -> Draft:
    """A thought before it is recorded."""
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
    if value.branch_id is not None and not _BRANCH_ID.fullmatch(value.branch_id):
        raise BadInput("branchId", "must be 1 to 64 of A-Z a-z 0-9 . _ -", recovery="Choose another name.")
    for field, number in (("thoughtNumber", value.requested_number), ("totalThoughts", value.total)):
        if number is not None and not 1 <= number <= MAX_NUMBER:
            raise BadInput(field, f"is {number}; it must be 1 to {MAX_NUMBER}", recovery="Leave it out if unsure.")
    return value


def page_size(value: int | None, default: int, limit: int) -> int:
    """How many entries a page holds."""
    if value is None:
        return default
    if not 1 <= value <= limit:
        raise BadInput("limit", f"is {value}; it must be 1 to {limit}")
    return value


def number_cursor(value: str | None) -> int | None:
    """A cursor that is a number."""
    if value is None:
        return None
    if not re.fullmatch(r"[0-9]{1,10}", value):
        raise BadInput("cursor", "is not one that was given out here", recovery="Pass nextCursor of an earlier reply.")
    return int(value)


def place_cursor(value: str | None) -> tuple[int, int] | None:
    """A cursor that is a thought's number and how many of its characters were told already."""
    if value is None:
        return None
    parts = _PLACE.fullmatch(value)
    if not parts:
        raise BadInput("cursor", "is not one that was given out here", recovery="Pass nextCursor of an earlier reply.")
    return int(parts[1]), int(parts[2] or 0)


def _storable(field: str, value: str) -> None:
    found = _UNSTORABLE.search(value)
    if found:
        what = "a NUL character" if found[0] == "\x00" else "half of a surrogate pair"
        raise BadInput(field, f"holds {what} at position {found.start()}", recovery="Remove it and repeat the call.")
