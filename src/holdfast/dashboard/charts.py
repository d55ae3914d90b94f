"""Charts as positions: bars over steps of time or over classes. Pure; across in percent, upwards in pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.lazy_dataclass import dataclass

HEIGHT = 120
GAP = 0.22
"""Part of a bar's place that stays empty."""
MOST_LABELS = 7
THIN = 2
"""Pixels of the smallest bar, so that little does not look like nothing."""

Shown = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar, and what it says on hover."""

    x: float
    width: float
    y: float
    height: float
    says: str


@dataclass(frozen=True, slots=True)
class Label:
    """A label below the bars."""

    x: float
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Chart:
    """What is drawn."""

    says: str
    """The same in words, for those who cannot see it."""
    bars: tuple[Bar, ...]
    labels: tuple[Label, ...]
    scale: tuple[str, str, str]
    """What the lines stand for, from the top: all, half, nothing."""
    height: int = HEIGHT


def draw(says: str, names: Sequence[str], values: Sequence[float], shown: Shown) -> Chart:
    """Draw a bar for each value."""
    top = _round_up(max(values, default=0))
    each = 100 / max(1, len(values))
    bars = []
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        height = round(max(THIN, value / top * HEIGHT), 1) if value > 0 else 0.0
        x = round((place + GAP / 2) * each, 3)
        bars.append(Bar(x, round(each * (1 - GAP), 3), HEIGHT - height, height, f"{name}: {shown(value)}"))
    return Chart(says, tuple(bars), _labels(names, each), (shown(top), shown(top / 2), shown(0)))


def _labels(names: Sequence[str], each: float) -> tuple[Label, ...]:
    every = -(-len(names) // MOST_LABELS)
    return tuple(
        Label(round((place + 0.5) * each, 3), name, "middle") for place, name in enumerate(names) if place % every == 0
    )


def _round_up(value: float) -> float:
    """Return the end of the scale: a number that can be halved and read at a glance."""
    if value <= 0:
        return 2
    power = 1.0
    while power * 10 <= value:
        power *= 10
    while power > value:
        power /= 10
    return next(power * step for step in (1, 2, 4, 6, 8, 10, 20) if power * step >= value and power * step != 1)
