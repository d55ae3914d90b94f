"""The strip of a project's last hours: when it was at work, and what happened. Pure; positions are percentages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from holdfast.briefing.ledger.model import ACTIVE_MS
from holdfast.lazy_dataclass import dataclass

WINDOW_MS = 6 * 3_600_000
MOST_MARKS = 14
CLOSE = 1.2
"""Marks of one kind that are nearer than this, in percent, are one."""
SHAPES = {
    "killed": "M-5-5 5 5M-5 5 5-5",
    "compacted": "M-5-5H5L0 5z",
    "resumed": "M-4-6 6 0-4 6z",
    "message": "M-6-4H6V4H1L-3 7V4H-6z",
    "commit": "M0-6 6 0 0 6-6 0z",
}
"""How each kind of mark is drawn, around its place."""


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that a mark stands for."""

    at: int
    kind: str
    text: str
    """What happened, and what was told then."""
    link: str | None = None
    """The page that shows it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A happening, or several of one kind close together."""

    x: float
    kind: str
    shape: str
    label: str
    anchor: str
    """Where its text is in relation to it, so that it stays on the page: start, middle or end."""
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Strip:
    """What is drawn."""

    spans: tuple[tuple[float, float], ...]
    """Where it was at work: beginning and width."""
    marks: tuple[Mark, ...]
    label: str
    """The same in words."""


EMPTY = Strip((), (), "")


def draw(now: int, steps: Iterable[int], happened: Sequence[Happening]) -> Strip:
    """Draw the steps of time in which something was done, and the marks of what happened."""
    begin = now - WINDOW_MS
    spans: list[list[int]] = []
    for step in sorted(set(steps)):
        start, end = max(begin, step * ACTIVE_MS), min(now, (step + 1) * ACTIVE_MS)
        if end <= start:
            continue
        if spans and start <= spans[-1][1]:
            spans[-1][1] = end
        else:
            spans.append([start, end])
    marks = _marks(begin, [one for one in happened if begin <= one.at <= now])
    minutes = sum(end - start for start, end in spans) // 60_000
    return Strip(
        tuple((_place(begin, start), _place(0, end - start)) for start, end in spans), marks, _words(minutes, marks)
    )


def _marks(begin: int, happened: Sequence[Happening]) -> tuple[Mark, ...]:
    marks: list[Mark] = []
    groups: list[list[Happening]] = []
    for one in sorted(happened, key=lambda one: one.at):
        near = next((group for group in groups if group[0].kind == one.kind and _is_near(group[-1], one)), None)
        if near is None:
            groups.append([one])
        else:
            near.append(one)
    for group in groups[-MOST_MARKS:]:
        last = group[-1]
        x = _place(begin, last.at)
        times = f"{len(group)} × " if len(group) > 1 else ""
        label = f"{datetime.fromtimestamp(last.at / 1000):%H:%M} {times}{last.text}"
        anchor = "start" if x < 25 else "end" if x > 75 else "middle"
        marks.append(Mark(x, last.kind, SHAPES[last.kind], label, anchor, last.link))
    return tuple(marks)


def _is_near(one: Happening, other: Happening) -> bool:
    return (other.at - one.at) / WINDOW_MS * 100 < CLOSE


def _place(begin: int, at: int) -> float:
    return round((at - begin) / WINDOW_MS * 100, 2)


def _words(minutes: int, marks: Sequence[Mark]) -> str:
    worked = f"at work for {minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"at work for {minutes} min"
    kinds = ", ".join(
        f"{sum(mark.kind == kind for mark in marks)} {kind}" for kind in SHAPES if kind in {mark.kind for mark in marks}
    )
    return f"The last six hours: {worked if minutes else 'idle'}{f'; marks: {kinds}' if kinds else ''}"
