"""Result of one check of a gate, and how its text is worded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdfast.lazy_dataclass import dataclass
from holdfast.protocol.model import Status
from holdfast.text.quoting import named as plain_or_quoted

MAX_NAMED = 5
MAX_PATH_CHARS = 200


@dataclass(frozen=True, slots=True)
class Finding:
    """Status of a check, and what was found or is missing, in one line."""

    status: Status
    text: str


passed = partial(Finding, Status.PASS)
failed = partial(Finding, Status.FAIL)
skipped = partial(Finding, Status.SKIPPED)


def shown(path: str) -> str:
    """Format a path, pattern or branch: as it is if it is plain, otherwise quoted."""
    return plain_or_quoted(path, MAX_PATH_CHARS)


def named(paths: Sequence[str]) -> str:
    """Format the first few of many paths."""
    return first_few([shown(path) for path in paths[: MAX_NAMED + 1]], len(paths))


def first_few(texts: Sequence[str], count: int | None = None) -> str:
    """Join the first few of many texts, and say how many more there are."""
    more = (len(texts) if count is None else count) - MAX_NAMED
    return ", ".join(texts[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def any_of(paths: Sequence[str]) -> str:
    """Format paths of which one is enough."""
    return " or ".join(map(shown, paths))
