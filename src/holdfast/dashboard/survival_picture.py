"""Draws a break: time from left to right, a gap where the context was lost, the briefing as a bridge over it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from holdfast.briefing.ledger.model import ACTIVE_MS
from holdfast.dashboard.strip import SHAPES
from holdfast.dashboard.survival import Step, Survival, Thing
from holdfast.lazy_dataclass import dataclass
from holdfast.text.terminal import visible

ROW = 30
TOP = 118
"""Where the first row is."""
BAR = 34
"""Where the time is drawn."""
DECK = 92
"""The height of the bridge."""
FALL = 44
"""How far what is lost falls."""
BESIDE = 12
"""Between a dot and its label."""
MOST_CHARS = 100
"""Of a label; no frame has room for more."""
NARROW_CHARS, WIDE_CHARS = frozenset("ijltfr.,:;'|!()[]/- “”"), frozenset("mwMW@%+=<>~…")
NARROW_EM, PLAIN_EM, CAPITAL_EM, WIDE_EM, BOLD = 0.41, 0.64, 0.78, 1.0, 1.12
"""Widths of letters as shares of their height, in a wide font; bold ones are wider."""
FIRST_WIDE = 0x1100
"""Where scripts begin whose letters are as wide as high."""
DAY_MS = 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Frame:
    """The places of a drawing."""

    name: str
    width: int
    left: int
    """Where the ground on the left ends, and the bridge begins."""
    right: int
    reach: int
    """Between the ground's edge and the dots beside the labels."""
    font: int
    """The height of a label's letters; style.css says the same."""

    @property
    def label_space(self) -> int:
        """How wide a label on the left may be."""
        return self.left - self.reach - BESIDE

    @property
    def step_space(self) -> int:
        """How wide one on the right may be."""
        return self.width - self.right - self.reach - BESIDE


WIDE = Frame("wide", 1040, 424, 616, 96, 13)
NARROW = Frame("narrow", 358, 150, 214, 14, 12)


@dataclass(frozen=True, slots=True)
class Wire:
    """One thing on its way: over the bridge, or down."""

    path: str
    kind: str
    """told, used (and gone on with), new (gone on with something else) or lost."""


@dataclass(frozen=True, slots=True)
class Label:
    """A text at its place."""

    x: float
    y: float
    anchor: str
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Dot:
    x: float
    y: float
    kind: str


@dataclass(frozen=True, slots=True)
class Span:
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that is drawn."""

    frame: Frame
    height: int
    wires: tuple[Wire, ...]
    dots: tuple[Dot, ...]
    labels: tuple[Label, ...]
    before: tuple[Span, ...]
    """When it was at work, on the left."""
    after: tuple[Span, ...]
    mark: str
    """The shape of the break."""
    deck_y: float
    floor: int
    """Where the gap ends."""
    is_open: bool
    """Whether nobody has crossed yet."""


def draw(one: Survival, now: int, frame: Frame) -> Picture:
    """Draw a break into a frame."""
    told = [thing for thing in one.things if thing.told]
    lost = [thing for thing in one.things if not thing.told]
    deck_y = TOP + max(0, (len(told) - 1) * ROW - DECK) / 2 - (ROW / 2 if len(told) * ROW > DECK else 0)
    first_lost = max(TOP + len(told) * ROW, int(deck_y) + DECK + 30)
    rows = [(thing, TOP + number * ROW) for number, thing in enumerate(told)]
    rows += [(thing, first_lost + number * ROW) for number, thing in enumerate(lost)]
    floor = max([rows[-1][1] if rows else TOP, TOP + (len(one.steps) - 1) * ROW]) + FALL
    wires: list[Wire] = []
    dots: list[Dot] = []
    labels: list[Label] = [*_times(one, now, frame)]
    dot_left, dot_right = frame.left - frame.reach, frame.right + frame.reach
    for number, (thing, y) in enumerate(rows):
        kind = ("used" if thing.after else "told") if thing.told else "lost"
        dots.append(Dot(dot_left, y, kind))
        labels.append(Label(dot_left - BESIDE, y + 4, "end", _short(thing, frame, kind), f"label {thing.kind} {kind}"))
        if not thing.told:
            wires.append(Wire(_falling(dot_left, y, frame), "lost"))
            continue
        port = deck_y + DECK * (number + 1) / (len(told) + 1)
        wires.append(Wire(_curve(dot_left, y, frame.left, port), kind))
    for number, step in enumerate(one.steps):
        y, kind = TOP + number * ROW, "used" if step.known else "new"
        port = deck_y + DECK * (number + 1) / (len(one.steps) + 1)
        wires.append(Wire(_curve(frame.right, port, dot_right, y), kind))
        dots.append(Dot(dot_right, y, kind))
        labels.append(Label(dot_right + BESIDE, y + 4, "start", _action(step, frame), f"label step {kind}"))
    return Picture(
        frame,
        floor + 8,
        tuple(sorted(wires, key=lambda wire: ("lost", "new", "told", "used").index(wire.kind))),
        tuple(dots),
        tuple(labels),
        _spans(one.knew.active, one.knew.started_at, one.knew.last_at, 0, frame.left),
        _after(one, frame),
        SHAPES["compacted" if one.kind == "compacted" else "killed"],
        deck_y,
        floor,
        one.at is None,
    )


def _short(thing: Thing, frame: Frame, kind: str) -> str:
    bold = kind == "used"
    text = " ".join(visible(thing.text).split())
    if thing.kind == "request":
        return f"“{_fitted(text, frame.label_space - 2 * frame.font, frame, bold=bold)}”"
    if thing.kind in ("changed", "read"):
        return _path(text, frame.label_space, frame, bold=bold)
    return _fitted(text, frame.label_space, frame, bold=bold)


def _action(step: Step, frame: Frame) -> str:
    text = " ".join(visible(step.text).split())
    space = frame.step_space - _width(f"{step.kind} ", frame, bold=step.known)
    if step.kind in ("asked", "said"):
        return f"{step.kind} “{_fitted(text, space - 2 * frame.font, frame, bold=step.known)}”"
    cut = _path if step.kind in ("changed", "read") else _fitted
    return f"{step.kind} {cut(text, space, frame, bold=step.known)}"


def _path(path: str, space: float, frame: Frame, *, bold: bool) -> str:
    """Return a path, or what fits of its end: a file's name says more than the folders it is in."""
    if _width(path, frame, bold=bold) <= space:
        return path
    if frame is NARROW:
        return _fitted(path.rpartition("/")[2], space, frame, bold=bold)
    return _fitted(path[-MOST_CHARS:][::-1], space, frame, bold=bold)[::-1]


def _fitted(text: str, space: float, frame: Frame, *, bold: bool) -> str:
    """Return a text, or its beginning with an ellipsis, that is no wider than a space."""
    text = text[:MOST_CHARS]
    if _width(text, frame, bold=bold) <= space:
        return text
    left = space - _width("…", frame, bold=bold)
    for place, char in enumerate(text):
        left -= _width(char, frame, bold=bold)
        if left < 0:
            return f"{text[:place].rstrip()}…"
    return f"{text.rstrip()}…"


def _width(text: str, frame: Frame, *, bold: bool) -> float:
    """Estimate how wide a text is, rather too wide: browsers have different fonts."""
    return sum(map(_em, text)) * frame.font * (BOLD if bold else 1)


@lru_cache(4_096)
def _em(char: str) -> float:
    if char in NARROW_CHARS:
        return NARROW_EM
    if char in WIDE_CHARS or ord(char) >= FIRST_WIDE:
        return WIDE_EM
    return CAPITAL_EM if char.isupper() else PLAIN_EM


def _curve(x: float, y: float, to_x: float, to_y: float) -> str:
    middle = round((x + to_x) / 2, 1)
    return f"M{x} {y}C{middle} {y} {middle} {to_y:.1f} {to_x} {to_y:.1f}"


def _falling(x: float, y: float, frame: Frame) -> str:
    edge = frame.left + (frame.right - frame.left) * 0.12
    return f"M{x} {y}H{frame.left - 8}C{edge:.1f} {y} {edge + 14:.1f} {y + 10} {edge + 18:.1f} {y + FALL - 6}"


# -- time -------------------------------------------------------------------------------------------------------------


def _times(one: Survival, now: int, frame: Frame) -> list[Label]:
    y, knew = BAR + 24, one.knew
    ended = {"killed": "killed", "resumed": "killed", "compacted": "compacted"}.get(one.kind, "ended")
    wide = frame is WIDE
    broke = one.broke_at
    labels = [
        Label(0, y, "start", _clock(knew.started_at, now), "time"),
        Label(frame.left - 2, y, "end", f"{ended} {_clock(broke, now)}" if wide else _clock(broke, now), "time strong"),
    ]
    if one.at is None:
        return labels
    began = {"compacted": "goes on", "resumed": "resumed"}.get(one.kind, "begins anew")
    labels.append(
        Label(
            frame.right + 2,
            y,
            "start",
            f"{_clock(one.at, now)} {began}" if wide else _clock(one.at, now),
            "time strong",
        )
    )
    if one.continued is not None:
        until = "now" if one.continued.live else _clock(one.continued.did.last_at, now)
        labels.append(Label(frame.width, y, "end", until, "time"))
    gap = max(0, one.at - broke)
    if gap >= 60_000:
        labels.append(Label((frame.left + frame.right) / 2, BAR - 12, "middle", _long(gap), "time"))
    return labels


def _after(one: Survival, frame: Frame) -> tuple[Span, ...]:
    if one.at is None or one.continued is None:
        return ()
    did = one.continued.did
    return _spans(did.active, one.at, max(did.last_at, one.at + 1), frame.right, frame.width)


def _spans(steps: Sequence[int], begin: int, end: int, x: int, to_x: int) -> tuple[Span, ...]:
    """Return when something was done between two times, from x to to_x."""
    if end <= begin:
        return ()
    scale = (to_x - x) / (end - begin)
    spans: list[list[float]] = []
    for step in sorted(set(steps)):
        start, stop = max(begin, step * ACTIVE_MS), min(end, (step + 1) * ACTIVE_MS)
        if stop <= start:
            continue
        at, until = x + (start - begin) * scale, x + (stop - begin) * scale
        if spans and at <= spans[-1][1] + 1:
            spans[-1][1] = until
        else:
            spans.append([at, until])
    return tuple(Span(round(at, 1), round(max(2.0, until - at), 1)) for at, until in spans)


def _clock(at: int, now: int) -> str:
    when = datetime.fromtimestamp(at / 1000)
    return f"{when:%H:%M}" if now - at < DAY_MS else f"{when:%-d %b %H:%M}"


def _long(ms: int) -> str:
    minutes = ms // 60_000
    if minutes >= 2 * 24 * 60:
        return f"{minutes // (24 * 60)} days"
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
