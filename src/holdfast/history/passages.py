"""What of a transcript is worth finding: requests, answers, commands, and what tools said. Pure, no I/O."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.briefing.ledger.entries import Entry, blocks, text_member, text_of, timestamp
from holdfast.redaction import masked

HEAD, TAIL = 12_000, 8_000
"""Characters kept of a long text: how it begins, and how it ends, which is where errors are."""
MARGIN = 8_000
"""Characters beyond those that are looked through for secrets: no secret is longer."""
MOST_VALUES = 50


@dataclass(frozen=True, slots=True)
class Passage:
    """One thing that somebody said, or that a tool did."""

    role: str
    """user, assistant, tool (what was called), result or error (what it said)."""
    content: str
    """Without secrets, and cut in the middle where it is long."""
    at: int
    """When, in milliseconds; 0 where the transcript does not say."""


def passages(entry: Entry) -> Iterator[Passage]:
    """What one line of a transcript tells; nothing of lines that nobody said."""
    speaker = entry.get("type")
    if speaker not in ("user", "assistant") or entry.get("isMeta"):
        return
    at = timestamp(entry) or 0
    for block in blocks(entry):
        role, text = _told(str(speaker), block)
        kept = _kept(text)
        if kept.strip():
            yield Passage(role, kept, at)


def _told(speaker: str, block: dict[str, Any]) -> tuple[str, str]:
    kind = block.get("type")
    if kind == "text":
        return speaker, text_member(block, "text")
    if kind == "tool_use":
        values = _texts(block.get("input"))
        return "tool", "\n".join([text_member(block, "name"), *values])
    if kind == "tool_result":
        return "error" if block.get("is_error") else "result", text_of(block)
    return speaker, ""


def _texts(arguments: Any) -> list[str]:
    values = list(arguments.values())[:MOST_VALUES] if isinstance(arguments, dict) else []
    return [value for value in values if isinstance(value, str)]


def _kept(text: str) -> str:
    """Without secrets and without what no database takes; of a long text, its beginning and its end.

    More than that is looked through for secrets, so that none is kept because its other half was cut off.
    """
    if len(text) <= HEAD + TAIL:
        return _clean(text)
    return f"{_clean(text[: HEAD + MARGIN])[:HEAD]}\n…\n{_clean(text[-TAIL - MARGIN :])[-TAIL:]}"


def _clean(text: str) -> str:
    return masked(text).replace("\0", " ").encode("utf-8", "replace").decode()
