"""Rules of a briefing: what comes first, how much is told, and that it fits. Pure, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum

from holdfast.capability.briefing import Item

MAX_BRIEFING_CHARS = 9_000
"""Characters of a briefing: Claude Code cuts what is longer than 10,000 to a preview."""
MAX_PATH_CHARS = 200
BYTES_PER_TOKEN = 3.5
"""Estimates a text's size without a tokenizer; English prose has over 4, paths and code a little less."""


class BriefingSetting(StrEnum):
    """How much the user wants agents to be told."""

    OFF = "off"
    OFFER = "offer"
    FULL = "full"


class Occasion(StrEnum):
    """Why an agent is briefed."""

    STARTUP = "startup"
    """A new session, and the last one ended in an orderly way."""
    CRASH = "crash"
    """A new session, and the last one was cut off."""
    RESUME = "resume"
    COMPACT = "compact"
    CLEAR = "clear"
    ASKED = "asked"
    """The agent or a person asked for it."""


TOKENS = {
    Occasion.STARTUP: 400,
    Occasion.CRASH: 1_200,
    Occasion.RESUME: 400,
    Occasion.COMPACT: 1_200,
    Occasion.CLEAR: 60,
    Occasion.ASKED: 1_200,
}
"""How much a briefing may cost on each occasion."""


def tokens(text: str) -> int:
    """Estimate how many tokens a text costs, rather too many than too few."""
    return -int(-size(text) // BYTES_PER_TOKEN)


def fitting(items: Iterable[Item], budget: int, frame: str = "") -> list[Item]:
    """Return the items that fit a budget of tokens beside a frame, most needed first, each text once."""
    room = min(budget * BYTES_PER_TOKEN, MAX_BRIEFING_CHARS) - size(frame)
    chosen: list[Item] = []
    seen: set[str] = set()
    for item in sorted(items, key=lambda one: one.rank):
        if item.text in seen:
            continue
        seen.add(item.text)
        versions = [item] if item.shorter is None else [item, replace(item, text=item.shorter, shorter=None)]
        fits = next((one for one in versions if size(one.line) + 1 <= room), None)
        if fits is not None:
            chosen.append(fits)
            room -= size(fits.line) + 1
    return chosen


def joined(frame: str, items: Sequence[Item]) -> str:
    """Return the briefing's text; empty if there is nothing to tell."""
    return "\n".join([frame, *(item.line for item in items)]) if items else ""


def size(text: str) -> int:
    """Return how many bytes a text has, even if it is not valid Unicode."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
