"""Something that does not fit."""

from __future__ import annotations

from dataclasses import dataclass

from tests.chaos.history import Op


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken."""

    check: str
    """The name of the promise, as the table of planted defects has it."""
    text: str
    ops: list[Op]
    """The operations that show it."""
