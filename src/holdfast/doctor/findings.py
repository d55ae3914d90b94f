"""Findings of a check."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from holdfast.lazy_dataclass import dataclass

Fix = Callable[[], str]
"""Makes a safe repair and returns what it did; raises HoldfastError or OSError if it cannot."""


class Mark(StrEnum):
    """State of a link."""

    OK = "ok"
    NOTE = "note"
    """Works, with something to know."""
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line about one link."""

    mark: Mark
    text: str
    repair: str | None = None
    """What a person can do about it."""
    fix: Fix | None = None
    """What `--fix` does about it."""
    link: str = ""
    """The name of the link; filled in by `examine`."""


def ok(text: str) -> Finding:
    """Return a finding for a link that works."""
    return Finding(Mark.OK, text)


def note(text: str, repair: str | None = None, fix: Fix | None = None) -> Finding:
    """Return a finding for a link that works, with a remark."""
    return Finding(Mark.NOTE, text, repair, fix)


def fault(text: str, repair: str, fix: Fix | None = None) -> Finding:
    """Return a finding for a broken link, with its repair."""
    return Finding(Mark.FAULT, text, repair, fix)
