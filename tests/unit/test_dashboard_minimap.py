"""The whole of a long session in one strip."""

from __future__ import annotations

from holdfast.dashboard.tree import MAP_LANES, draw, minimap
from holdfast.reasoning.model import Session, Status
from holdfast.reasoning.results import Line, OnBranch, Shape

END = 100_000


def shape(lines: tuple[Line, ...]) -> Shape:
    session = Session("s", "A long one", (), None, Status.ACTIVE, False, None, None, END, len(lines), "", None, 1, 1)
    on = tuple(OnBranch(number, line.id) for line in lines for number in range(line.first, line.last + 1))
    return Shape(session, 1, 600, END, lines, on, (), ())


def test_branches_that_overlap_in_little_are_drawn_as_one() -> None:
    crowded = shape(tuple(Line(f"b{n}", n, 2, n + 1, n + 2) for n in range(3, 500, 3)))
    drawn = minimap(crowded, draw(crowded, 1), 1, 120)
    assert drawn is not None and 1 <= len(drawn.branches) <= MAP_LANES


def test_branches_that_are_apart_stay_apart_and_can_be_seen() -> None:
    apart = shape((Line("a", 10, 2, 11, 12), Line("b", 50_000, 20_000, 50_001, 70_000)))
    drawn = minimap(apart, draw(apart, 1), 1, 120)
    assert drawn is not None
    assert drawn.branches == ((0.01, 0.3, 1), (50.0, 20.0, 1))
