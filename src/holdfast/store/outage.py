"""Since when a store does not answer, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outage:
    """A store that does not answer."""

    since: int
    """Milliseconds since the epoch."""
    reason: str
    """In words that hold no secret."""
    repair: str | None = None
    """What the user can do."""
