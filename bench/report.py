"""One table of numbers, each with its target and whether it was met."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Effort:
    """How often things are measured."""

    starts: int = 21
    """Cold starts of each relay and server."""
    calls: int = 1_000
    """Thoughts over stdio of each server."""
    edge: int = 100
    """How many of the first and of the last thoughts of a long session are compared."""
    length: int = 100_000
    """Thoughts in the long session."""
    sessions: int = 10_000
    """Sessions of 50 thoughts in the large store."""
    loads: int = 100
    """Calls of load_context."""
    daemon_starts: int = 9
    """Starts of the daemon with each store."""
    http_calls: int = 50
    """Thoughts of each HTTP client."""
    pairs: int = 11
    """New pairs of teams."""
    turns: int = 150
    """Turns of a warm agent."""
    transcripts: int = 14
    """Sessions of Claude Code that are compacted."""
    before: Path | None = None
    """An earlier checkout with its own .venv, to be compared with in the same run."""


QUICK = Effort(
    starts=3,
    calls=30,
    edge=30,
    length=2_000,
    sessions=200,
    loads=10,
    daemon_starts=2,
    http_calls=3,
    pairs=2,
    turns=5,
    transcripts=2,
)
"""Enough to see that the benchmarks work; the numbers say nothing."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measured promise. Smaller is better for every one of them."""

    what: str
    holdfast: str
    """What was measured of Holdfast, with its unit."""
    against: str = ""
    """What it is compared with, measured in the same run."""
    value: float | None = None
    """The number that is compared; None where it could not be measured."""
    target: float | None = None
    """What it may be at most; None where it is only shown."""
    unit: str = "x"
    samples: dict[str, Sequence[float]] = field(default_factory=dict)
    """Every single measurement, for the JSON file."""

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "NOT MEASURED"
        if self.target is None:
            return "shown"
        return "ok" if self.value <= self.target else "MISSED"

    def cells(self) -> tuple[str, ...]:
        value = "" if self.value is None else _number(self.value, self.unit)
        target = "" if self.target is None else f"<= {_number(self.target, self.unit)}"
        return self.what, self.holdfast, self.against, value, target, self.verdict

    def as_json(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "holdfast": self.holdfast,
            "against": self.against,
            "value": self.value,
            "target": self.target,
            "unit": self.unit,
            "verdict": self.verdict,
            "samples": {name: list(values) for name, values in self.samples.items()},
        }


HEADINGS = ("measured", "Holdfast", "compared with", "result", "target", "verdict")


def table(rows: Sequence[Row]) -> str:
    """All rows as one table of plain text."""
    return drawn(HEADINGS, [row.cells() for row in rows])


def drawn(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of plain text, its columns as wide as they must be."""
    lines = [headings, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    texts = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([texts[0], "-" * (sum(widths) + 2 * (len(widths) - 1)), *texts[1:]])


def machine() -> dict[str, Any]:
    """What the numbers depend on."""
    return {"python": platform.python_version(), "system": platform.system(), "cores": os.cpu_count()}


def compare(
    what: str, ours: Sequence[float], theirs: Sequence[float], *, theirs_is: str, target: float | None = None
) -> Row:
    """A row for two series of seconds: their medians, and ours as a multiple of the other."""
    mine, other = statistics.median(ours), statistics.median(theirs)
    return Row(
        what,
        milliseconds(mine),
        f"{milliseconds(other)} ({theirs_is})",
        mine / other,
        target,
        samples={"holdfast": ours, theirs_is: theirs},
    )


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 0.1 else f"{seconds * 1000:.0f} ms"


def _number(value: float, unit: str) -> str:
    return f"{value:.3g} {unit}" if value < 100 else f"{value:.0f} {unit}"


class Progress:
    """Says on stderr how far a section has come; a terminal gets one line that moves, a log a line per tenth."""

    def __init__(self, section: str) -> None:
        self.section = section
        self._said = ""
        self._began = time.monotonic()

    def __call__(self, what: str, done: int, total: int) -> None:
        moving = sys.stderr.isatty()
        percent = 100 * done // max(total, 1)
        said = f"{self.section}: {what} {percent if moving else percent // 10 * 10}%"
        if said != self._said:
            self._said = said
            seconds = time.monotonic() - self._began
            print(f"\r\033[K{said} ({seconds:.0f} s)" if moving else said, end="" if moving else "\n", file=sys.stderr)
            sys.stderr.flush()

    def close(self) -> None:
        """Leave the terminal's line to whoever comes next."""
        if self._said and sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
            sys.stderr.flush()
