"""What one check of a gate found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.protocol.model import Status
from holdfast.quoting import named as plain_or_quoted

MOST_NAMED = 5
LONGEST_PATH = 200


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


def shown(path: str) -> str:
    """A path, a pattern or a branch: as it is where it is plain, else quoted."""
    return plain_or_quoted(path, LONGEST_PATH)


def named(paths: Sequence[str]) -> str:
    """The first few of many paths."""
    return few([shown(path) for path in paths[: MOST_NAMED + 1]], len(paths))


def few(sayings: Sequence[str], count: int | None = None) -> str:
    """The first few of many sayings, and how many there are beside."""
    more = (len(sayings) if count is None else count) - MOST_NAMED
    return ", ".join(sayings[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def either(paths: Sequence[str]) -> str:
    """Paths of which one is enough."""
    return " or ".join(map(shown, paths))
