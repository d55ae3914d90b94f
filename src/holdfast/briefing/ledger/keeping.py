"""What a ledger keeps: texts without secrets and up to a length, lists up to a number."""

from __future__ import annotations

from typing import TypeVar

from holdfast.briefing.ledger.model import MAX_LINE
from holdfast.redaction import masked
from holdfast.text import clipped

ROOM = 1_000
"""Characters beyond the cut that are searched for secrets too, so that none is cut in two and kept."""

Part = TypeVar("Part")


def kept(text: str, limit: int) -> str:
    """Return a text as a ledger keeps it: without secrets, and cut."""
    cleaned = masked(text[: limit + ROOM])
    if not cleaned.isascii() or "\0" in cleaned:
        cleaned = cleaned.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
    return clipped(cleaned, limit)


def kept_line(text: str, limit: int = MAX_LINE) -> str:
    """Return a text as a ledger keeps it, on one line."""
    return kept(" ".join(text[: limit + ROOM].split()), limit)


def keep(parts: list[Part], part: Part, limit: int) -> None:
    """Add a part to a list, and drop the oldest of too many."""
    parts.append(part)
    del parts[:-limit]
