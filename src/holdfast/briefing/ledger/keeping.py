"""What a ledger keeps of a text: no secret, no more than its space, and no more parts than it may have."""

from __future__ import annotations

from typing import Any

from holdfast.briefing.ledger.model import MAX_LINE
from holdfast.redaction import masked
from holdfast.text import clipped

ROOM = 1_000
"""A text is looked through for secrets this far beyond where it is cut, so that none is cut in two and kept."""


def kept(text: str, limit: int) -> str:
    """A text as a ledger keeps it: without secrets, and cut."""
    cleaned = masked(text[: limit + ROOM])
    if not cleaned.isascii() or "\0" in cleaned:
        cleaned = cleaned.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
    return clipped(cleaned, limit)


def kept_line(text: str, limit: int = MAX_LINE) -> str:
    """The same, on one line."""
    return kept(" ".join(text[: limit + ROOM].split()), limit)


def bound(parts: list[Any], limit: int) -> None:
    """Leave out the oldest of too many."""
    del parts[:-limit]
