"""A session's thoughts as a tree to look at: one row each, long unbranched stretches folded, branches side by side.

Pure. Rows are in the order of the numbers, which is the order of time; every line (the main one and each branch) has a
lane. What is drawn is a window of rows around one thought, so that the longest session costs no more than a short one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from holdfast.lazy_dataclass import dataclass
from holdfast.reasoning.results import Line, Shape

MOST_ROWS = 60
FOLDED_FROM = 5
"""Fewer thoughts than this in a row are shown one by one."""
NEAR = 3
"""Thoughts before and after the selected one that are never folded."""
MOST_LANES = 10
"""Lanes that are drawn apart; further branches share the last one."""
ROW, LANE, MARGIN = 32, 16, 26
"""Pixels: the height of a row, the width of a lane, and the room for arcs to the left of them."""


@dataclass(frozen=True, slots=True)
class Row:
    """A thought, or a stretch of them."""

    first: int
    last: int
    branch: str | None
    x: float
    y: float
    selected: bool
    begins: str | None
    """The branch that begins here."""
    revises: int | None
    revised_by: int | None
    """The first thought that revises it."""

    @property
    def count(self) -> int:
        """How many thoughts it stands for."""
        return self.last - self.first + 1

    @property
    def folded(self) -> bool:
        """Whether it stands for a stretch."""
        return self.last > self.first


@dataclass(frozen=True, slots=True)
class Tree:
    """What is drawn."""

    rows: tuple[Row, ...]
    width: int
    height: int
    lines: tuple[str, ...]
    """Paths of the main line and of the branches."""
    arcs: tuple[str, ...]
    """Paths from revisions to what they revise."""
    earlier: int
    later: int
    """How many thoughts are before and after the window."""


def draw(shape: Shape, selected: int, opened: tuple[int, int] | None = None) -> Tree:
    """Draw the window of rows around the selected thought; what is within `opened` is not folded."""
    if shape.end == 0:
        return Tree((), 0, 0, (), (), 0, 0)
    stretches = _stretches(shape, selected, opened)
    place = bisect_right([first for first, _, _ in stretches], selected) - 1
    start = max(0, min(place - MOST_ROWS // 2, len(stretches) - MOST_ROWS))
    shown = stretches[start : start + MOST_ROWS]
    return _Drawing(shape, shown, selected).tree()


Stretch = tuple[int, int, str | None]
"""Numbers from, to, and the branch they are on."""


def _stretches(shape: Shape, selected: int, opened: tuple[int, int] | None) -> list[Stretch]:
    """Return the range as rows: notable thoughts one by one, the rest in stretches."""
    apart = {shape.first, shape.last, *range(selected - NEAR, selected + NEAR + 1)}
    for line in shape.lines:
        apart |= {line.from_number, line.first, line.last}
    for revision in shape.revisions:
        apart |= {revision.number, revision.of}
    stands_out = sorted(apart)
    rows: list[Stretch] = []
    for first, last, branch in _islands(shape):
        at = first
        for number in stands_out[bisect_left(stands_out, first) : bisect_right(stands_out, last)]:
            if at < number:
                rows += _folded(at, number - 1, branch, opened)
            rows.append((number, number, branch))
            at = number + 1
        if at <= last:
            rows += _folded(at, last, branch, opened)
    return rows


def _folded(first: int, last: int, branch: str | None, opened: tuple[int, int] | None) -> Iterator[Stretch]:
    if opened is not None and first <= opened[1] and opened[0] <= last:
        yield from _folded(first, opened[0] - 1, branch, None)
        yield from ((number, number, branch) for number in range(max(first, opened[0]), min(last, opened[1]) + 1))
        yield from _folded(max(first, opened[1] + 1), last, branch, None)
    elif last - first + 1 >= FOLDED_FROM:
        yield first, last, branch
    else:
        yield from ((number, number, branch) for number in range(first, last + 1))


def _islands(shape: Shape) -> Iterator[Stretch]:
    """Yield runs of consecutive numbers on one line."""
    at = shape.first
    first = last = 0
    branch: str | None = None
    for one in shape.on_branches:
        if branch == one.branch_id and one.number == last + 1:
            last = one.number
            continue
        if branch is not None:
            yield first, last, branch
            at = last + 1
        if at < one.number:
            yield at, one.number - 1, None
        first, last, branch = one.number, one.number, one.branch_id
    if branch is not None:
        yield first, last, branch
        at = last + 1
    if at <= shape.last:
        yield at, shape.last, None


class _Drawing:
    """Places of rows and lanes, and the paths between them."""

    def __init__(self, shape: Shape, shown: Sequence[Stretch], selected: int) -> None:
        self._shape = shape
        self._shown = shown
        self._selected = selected
        self._firsts = [first for first, _, _ in shown]
        self._top, self._bottom = shown[0][0], shown[-1][1]
        self._height = len(shown) * ROW
        self._lines = [line for line in shape.lines if line.from_number <= self._bottom and line.last >= self._top]
        self._branch_at = {one.number: one.branch_id for one in shape.on_branches}
        self._lanes = _lanes(self._lines)

    def tree(self) -> Tree:
        begins = {line.first: line.id for line in self._lines}
        revises: dict[int, int] = {}
        revised: dict[int, int] = {}
        for one in self._shape.revisions:
            revises[one.number] = one.of
            revised.setdefault(one.of, one.number)
        rows = tuple(
            Row(
                first,
                last,
                branch,
                self._x(branch),
                self._y(first),
                selected=first <= self._selected <= last,
                begins=begins.get(first),
                revises=revises.get(first),
                revised_by=revised.get(first),
            )
            for first, last, branch in self._shown
        )
        widest = max(*(row.x for row in rows), *(self._x(line.id) for line in self._lines), 0)
        return Tree(
            rows,
            int(widest + LANE),
            self._height,
            tuple(self._paths()),
            tuple(self._arcs()),
            earlier=self._top - 1,
            later=self._shape.end - self._bottom,
        )

    def _x(self, branch: str | None) -> float:
        return MARGIN + LANE / 2 + LANE * (self._lanes.get(branch, MOST_LANES) if branch is not None else 0)

    def _y(self, number: int) -> float:
        """Return the middle of a number's row; the upper or lower edge for what is not shown."""
        if number < self._top:
            return 0
        if number > self._bottom:
            return self._height
        return (bisect_right(self._firsts, number) - 1) * ROW + ROW / 2

    def _paths(self) -> Iterator[str]:
        main = self._x(None)
        # The main line ends with its last thought, which may be long before the session's.
        ends = [last for _, last, branch in self._shown if branch is None]
        if self._goes_on():
            yield f"M{main:g} {self._y(1):g}V{self._height:g}"
        elif ends:
            yield f"M{main:g} {self._y(1):g}V{self._y(max(ends)):g}"
        for line in self._lines:
            x, first, last = self._x(line.id), self._y(line.first), self._y(line.last)
            if line.from_number < self._top:
                yield f"M{x:g} 0V{last:g}"
                continue
            leaves_x, leaves_y = self._x(self._branch_at.get(line.from_number)), self._y(line.from_number)
            turn = min(leaves_y + ROW, first)
            middle = (leaves_y + turn) / 2
            yield f"M{leaves_x:g} {leaves_y:g}C{leaves_x:g} {middle:g} {x:g} {middle:g} {x:g} {turn:g}V{last:g}"

    def _goes_on(self) -> bool:
        """Return whether the main line has thoughts below the window, as far as that is known."""
        if self._bottom >= self._shape.end:
            return False
        below = self._shape.last - self._bottom
        on_branches = sum(one.number > self._bottom for one in self._shape.on_branches)
        return self._shape.last < self._shape.end or on_branches < below

    def _arcs(self) -> Iterator[str]:
        for one in self._shape.revisions:
            if not (self._top <= one.number <= self._bottom and self._top <= one.of <= self._bottom):
                continue
            x, y = self._x(self._branch_at.get(one.number)), self._y(one.number)
            to_x, to_y = self._x(self._branch_at.get(one.of)), self._y(one.of)
            left = max(2.0, MARGIN - 6 - abs(y - to_y) / 24)
            yield f"M{x:g} {y:g}C{left:g} {y:g} {left:g} {to_y:g} {to_x:g} {to_y:g}"


def _lanes(lines: Sequence[Line]) -> dict[str, int]:
    """Give each branch a lane that is free from where it leaves to where it ends."""
    free_after = [0] * MOST_LANES
    lanes: dict[str, int] = {}
    for line in sorted(lines, key=lambda one: (one.from_number, one.first)):
        lane = next((place for place, last in enumerate(free_after) if last < line.from_number), MOST_LANES - 1)
        free_after[lane] = max(free_after[lane], line.last)
        lanes[line.id] = lane + 1
    return lanes


# -- the whole session in small ----------------------------------------------------------------------------------

MAP_LANES = 4
MAP_LEAST = 0.3
"""How wide the shortest branch is drawn, in percent."""
MAP_FROM = 150
"""Sessions with fewer thoughts need no map."""


@dataclass(frozen=True, slots=True)
class Minimap:
    """The whole session in one strip; places are percentages of its width."""

    branches: tuple[tuple[float, float, int], ...]
    """Where each begins, how wide it is, and its lane."""
    marks: tuple[tuple[float, float], ...]
    """Where revisions were made, and how many of them: 0 to 1."""
    window: tuple[float, float]
    selected: float
    jumps: tuple[tuple[float, float, int], ...]
    """Places to click: where, how wide, and the number it leads to."""


def minimap(shape: Shape, tree: Tree, selected: int, parts: int, jumps: int = 60) -> Minimap | None:
    """Draw the map of a long session."""
    end = shape.end
    if end < MAP_FROM or not tree.rows:
        return None

    def place(number: int) -> float:
        return round((number - 1) / end * 100, 2)

    lanes = _lanes(shape.lines)
    most = max((count for _, count in shape.density), default=1)
    top, bottom = tree.rows[0].first, tree.rows[-1].last
    steps = [round(step * end / jumps) + 1 for step in range(jumps + 1)]
    return Minimap(
        tuple(
            _joined((min(lanes[line.id], MAP_LANES), place(line.first), place(line.last + 1)) for line in shape.lines)
        ),
        tuple((round(part / parts * 100, 2), round(0.35 + 0.65 * count / most, 2)) for part, count in shape.density),
        (place(top), max(0.6, place(bottom + 1) - place(top))),
        place(selected),
        tuple((place(one), round(place(other) - place(one), 2), one) for one, other in pairwise(steps) if one <= end),
    )


def _joined(branches: Iterable[tuple[int, float, float]]) -> Iterator[tuple[float, float, int]]:
    """Yield where branches begin, how wide they are and their lane; what overlaps in a lane is drawn as one."""
    lane, begin, end = 0, 0.0, 0.0
    for one, first, last in sorted(branches):
        if one == lane and first <= end:
            end = max(end, last)
            continue
        if lane:
            yield begin, round(end - begin, 2), lane
        lane, begin, end = one, first, max(last, first + MAP_LEAST)
    if lane:
        yield begin, round(end - begin, 2), lane


def neighbours(shape: Shape, number: int) -> tuple[int | None, int | None]:
    """Return what comes before and after a thought on its own line; the thought that a branch leaves from counts."""
    on = {one.number: one.branch_id for one in shape.on_branches}
    mine = on.get(number)
    line = next((one for one in shape.lines if one.id == mine), None) if mine is not None else None
    if mine is not None:
        own = [one.number for one in shape.on_branches if one.branch_id == mine]
        at = bisect_left(own, number)
        before = own[at - 1] if at else (line.from_number if line is not None and line.first == number else None)
        return before, own[at + 1] if at + 1 < len(own) else None
    before = next((one for one in range(number - 1, shape.first - 1, -1) if one not in on), None)
    return before, next((one for one in range(number + 1, shape.last + 1) if one not in on), None)
