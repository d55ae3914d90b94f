"""What looking at one link of the chain found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

Fix = Callable[[], str]
"""Makes a repair that can destroy nothing, and says what it did; raises HoldfastError or OSError where it cannot."""


class Mark(StrEnum):
    """How a link is doing."""

    OK = "ok"
    NOTE = "note"
    """Works, and there is something to know."""
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line about one link."""

    mark: Mark
    text: str
    repair: str | None = None
    """What a person does about it."""
    fix: Fix | None = None
    """What `--fix` does about it."""
    link: str = ""
    """Which link it is about; filled in by whoever asked the check."""


def ok(text: str) -> Finding:
    """A link that holds."""
    return Finding(Mark.OK, text)


def note(text: str, repair: str | None = None, fix: Fix | None = None) -> Finding:
    """A link that holds, with something to know."""
    return Finding(Mark.NOTE, text, repair, fix)


def fault(text: str, repair: str, fix: Fix | None = None) -> Finding:
    """A link that is broken, and how it is mended."""
    return Finding(Mark.FAULT, text, repair, fix)
