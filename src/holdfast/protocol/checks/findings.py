"""What one check of a gate found."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.protocol.model import Status

MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """How a check ended, and what was seen or what is missing, in one line."""

    status: Status
    said: str


def passed(seen: str) -> Finding:
    """It holds."""
    return Finding(Status.PASS, seen)


def failed(missing: str) -> Finding:
    """It does not hold."""
    return Finding(Status.FAIL, missing)


def skipped(why: str) -> Finding:
    """There is nothing to ask for."""
    return Finding(Status.SKIPPED, why)


def named(paths: list[str] | tuple[str, ...]) -> str:
    """The first few of many paths."""
    more = len(paths) - MOST_NAMED
    return ", ".join(paths[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
