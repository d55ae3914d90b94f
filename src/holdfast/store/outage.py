"""Outage of a store: since when it does not answer, and why."""

from __future__ import annotations

from holdfast.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Outage:
    """A store that does not answer."""

    since: int
    """Milliseconds since the epoch."""
    reason: str
    """Text without secrets."""
    repair: str | None = None
    """What the user can do."""
