"""Figures as charts and tables: what teams and agents did in a day, a week or a quarter."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Sequence
from datetime import datetime, timedelta

from holdfast.bridge.model import Status
from holdfast.bridge.queries.figures import SentMessages
from holdfast.briefing.figures import Recovered
from holdfast.dashboard.amounts import MICRO, dollars, money, tokens
from holdfast.dashboard.charts import Chart, draw
from holdfast.dashboard.rooms import Rooms
from holdfast.lazy_dataclass import dataclass
from holdfast.teams.model import EXTERNAL
from holdfast.teams.results import PairActivity, StepFigures
from holdfast.text import counted

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
PERIODS = {"day": (24, HOUR_MS), "week": (7, DAY_MS), "quarter": (13, 7 * DAY_MS)}
"""How many steps each period has, and how long one is."""
BOUNDS = (60_000, 10 * 60_000, HOUR_MS, 4 * HOUR_MS, DAY_MS, 7 * DAY_MS)
LIVED = ("under 1 min", "1 to 10 min", "10 to 60 min", "1 to 4 h", "4 to 24 h", "1 to 7 days", "over 7 days")
SHORT = ("1 min", "10 min", "1 h", "4 h", "1 day", "7 days", "more")
MOST_PAIRS = 10
KNOWN = {
    "request": "requests",
    "changed": "files changed",
    "read": "files only read",
    "error": "errors",
    "step": "steps to do",
    "answer": "the user's answers",
}
AFTER = {"crash": "work was cut off", "compact": "a compaction", "startup": "a start", "resume": "a resumption"}


class Dollars(float):
    """An amount of money, formatted in a table and a plain number in a file. None is unknown, and empty in a file."""


class Percent(float):
    """A share; a table shows it as a percentage."""


Cell = str | int | Dollars | Percent | None


@dataclass(frozen=True, slots=True)
class Figure:
    """One chart with its table."""

    key: str
    title: str
    says: str
    """What it comes to, in a sentence."""
    chart: Chart | None
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    empty: str | None = None
    """What to say if there is nothing to show."""

    @property
    def csv(self) -> bytes:
        """The table as a file."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.head)
        writer.writerows([f"{cell:.6f}" if isinstance(cell, float) else cell for cell in row] for row in self.rows)
        return text.getvalue().encode("utf-8", "backslashreplace")

    @property
    def cells(self) -> list[list[tuple[str, bool]]]:
        """The table as it is shown: each cell's text, and whether it is a number."""
        return [[(_shown(cell), not isinstance(cell, str)) for cell in row] for row in self.rows]

    @property
    def numbers(self) -> list[bool]:
        """Which columns hold numbers."""
        return [not isinstance(cell, str) for cell in self.rows[0]] if self.rows else [False] * len(self.head)


@dataclass(frozen=True, slots=True)
class Period:
    """The steps of time that are counted, in the clock of this machine."""

    name: str
    begin: int
    step_ms: int
    labels: tuple[str, ...]
    """Below the bars."""
    times: tuple[str, ...]
    """When each step begins, in a table."""


@dataclass(frozen=True, slots=True)
class FiguresPage:
    """All figures of a period."""

    period: str
    totals: tuple[tuple[str, str], ...]
    figures: tuple[Figure, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show at all."""
        return all(one.empty for one in self.figures)

    def find(self, key: str) -> Figure | None:
        """Return the figure with this name."""
        return next((one for one in self.figures if one.key == key), None)


def period_until(now: int, name: str) -> Period:
    """Return the steps of a period whose last one is under way."""
    count, step = PERIODS[name]
    last = datetime.fromtimestamp(now / 1000).replace(minute=0, second=0, microsecond=0)
    if step > HOUR_MS:
        last = last.replace(hour=0)
    if step > DAY_MS:
        last -= timedelta(days=6)
    # Steps are of one length, whatever clocks do between them.
    begin = int(last.timestamp() * 1000) - (count - 1) * step
    starts = [datetime.fromtimestamp((begin + place * step) / 1000) for place in range(count)]
    form = {"day": "%H:%M", "week": "%a %-d", "quarter": "%-d %b"}[name]
    whole = "%Y-%m-%d %H:%M" if name == "day" else "%Y-%m-%d"
    return Period(
        name, begin, step, tuple(f"{one:{form}}" for one in starts), tuple(f"{one:{whole}}" for one in starts)
    )


async def look(rooms: Rooms, name: str) -> FiguresPage:
    """Return all figures of a period."""
    now = await rooms.store.read(lambda tx: tx.now())
    period = period_until(now, name)
    overview, briefings = rooms.teams.overview, rooms.briefings.figures
    (found, pairs), talks, sessions, recovered, sent = await asyncio.gather(
        overview.asked(period.begin, period.step_ms, MOST_PAIRS),
        overview.lifetimes(period.begin, BOUNDS),
        briefings.lifetimes(period.begin, BOUNDS),
        briefings.recovered(period.begin, period.step_ms),
        rooms.queue.sent(period.begin, period.step_ms),
    )
    by_step = {one.step: one for one in found}
    nothing = StepFigures(0, 0, 0, 0, 0, 0, 0, 0)
    steps = [by_step.get(place, nothing) for place in range(len(period.labels))]
    in_steps = dict(recovered.by_step)
    got_back = [in_steps.get(place, 0) for place in range(len(period.labels))]
    asked, cost = sum(one.asks for one in steps), sum(one.cost_microusd for one in steps)
    unpriced = sum(one.unpriced for one in steps)
    read, wrote = sum(one.input_tokens for one in steps), sum(one.output_tokens for one in steps)
    messages = _messages(period, sent)
    figures = (
        Figure(
            "asks",
            "Asks",
            f"{counted(asked, 'ask')}, {sum(one.answered for one in steps):,} answered,"
            f" {sum(one.failed for one in steps):,} failed.",
            draw("Asks over time", period.labels, [one.asks for one in steps], _whole),
            ("Begins", "Asked", "Answered", "Failed"),
            tuple((at, one.asks, one.answered, one.failed) for at, one in zip(period.times, steps, strict=True)),
            None if asked else "Nobody asked a team in this time.",
        ),
        messages,
        Figure(
            "tokens",
            "Tokens",
            f"{tokens(read)} read, {tokens(wrote)} written.",
            draw("Tokens over time", period.labels, [one.input_tokens + one.output_tokens for one in steps], tokens),
            ("Begins", "Read", "Written"),
            tuple((at, one.input_tokens, one.output_tokens) for at, one in zip(period.times, steps, strict=True)),
            None if read or wrote else "No agent of a team reported tokens in this period.",
        ),
        Figure(
            "cost",
            "Cost",
            f"{money(cost, unpriced)}."
            + (f" Of {counted(unpriced, 'turn')} no cost was reported." if unpriced and cost else ""),
            draw("Cost over time", period.labels, [one.cost_microusd / MICRO for one in steps], dollars),
            ("Begins", "US dollars", "Turns of unknown cost"),
            tuple((at, _cost(one), one.unpriced) for at, one in zip(period.times, steps, strict=True)),
            None
            if cost
            else f"Unknown: no agent reported the cost of its turns ({unpriced:,})."
            if unpriced
            else "Nothing was spent in this period.",
        ),
        Figure(
            "recoveries",
            "Recoveries",
            f"{counted(recovered.times, 'time')} an agent got back what it had lost{_after(recovered.after)}."
            f"{_taken_up(recovered)}",
            draw("Recoveries over time", period.labels, got_back, _whole),
            ("Begins", "Recoveries"),
            tuple(zip(period.times, got_back, strict=True)),
            None if recovered.times else "No agent had to recover anything in this period.",
        ),
        _lived("sessions", "How long agents' sessions lived", "session", sessions),
        _lived("conversations", "How long teams' conversations lived", "conversation", talks),
        _recall(recovered),
        _pairs(pairs),
    )
    totals = (
        ("Asks", f"{asked:,}"),
        ("Messages", f"{sum(one.times for one in sent):,}"),
        ("Tokens", tokens(read + wrote)),
        ("Cost", money(cost, unpriced)),
        ("Agents' sessions", f"{sum(sessions):,}"),
        ("Recoveries", f"{recovered.times:,}"),
    )
    return FiguresPage(name, totals, figures)


def _pairs(pairs: Sequence[PairActivity]) -> Figure:
    return Figure(
        "pairs",
        "Most active pairs",
        "",
        None,
        ("From", "To", "Asks", "Failed", "Tokens", "US dollars", "Turns of unknown cost"),
        tuple(
            (
                one.from_team if one.from_team != EXTERNAL else "outside",
                one.to_team,
                one.asks,
                one.failed,
                one.input_tokens + one.output_tokens,
                _cost(one),
                one.unpriced,
            )
            for one in pairs
        ),
        None if pairs else "Nobody asked a team in this time.",
    )


def _lived(key: str, title: str, noun: str, counts: Sequence[int]) -> Figure:
    total = sum(counts)
    return Figure(
        key,
        title,
        f"{counted(total, noun)}, by how long they lived at most.",
        draw(title, SHORT, counts, _whole),
        ("Lived", f"{noun.capitalize()}s"),
        tuple(zip(LIVED, counts, strict=True)),
        None if total else f"No {noun} was used in this period.",
    )


def _after(after: Sequence[tuple[str, int]]) -> str:
    named = ", ".join(f"{times:,} after {AFTER.get(occasion, occasion)}" for occasion, times in after)
    return f": {named}" if named else ""


def _taken_up(recovered: Recovered) -> str:
    if not recovered.known:
        return ""
    return f" After {recovered.taken_up:,} of the {recovered.known:,} whose transcript is known it went on working."


def _recall(recovered: Recovered) -> Figure:
    known, told = (sum(one.had for one in recovered.recalled), sum(one.told for one in recovered.recalled))
    return Figure(
        "recall",
        "Recall",
        f"Of {counted(known, 'thing')} that agents knew at the latest {counted(recovered.compared, 'break')},"
        f" {told:,} were in what they were told.",
        None,
        ("Known", "In all", "Told", "Share"),
        tuple((KNOWN[one.kind], one.had, one.told, Percent(one.told / one.had)) for one in recovered.recalled),
        None if known else "No break in this time has both what was known and what was told.",
    )


def _messages(period: Period, sent: Sequence[SentMessages]) -> Figure:
    rows = [_outcomes([one for one in sent if one.step == place]) for place in range(len(period.labels))]
    total = [sum(column) for column in zip(*rows, strict=True)]
    names = ("done", "waiting", "failed", "dead letter", "cancelled")
    became = ", ".join(f"{count:,} {name}" for name, count in zip(names, total[1:], strict=True) if count)
    return Figure(
        "messages",
        "Messages",
        f"{total[0]:,} sent to agents: {became}.",
        draw("Messages over time", period.labels, [row[0] for row in rows], _whole),
        ("Begins", "Sent", *(name.capitalize() for name in names)),
        tuple((at, *row) for at, row in zip(period.times, rows, strict=True)),
        None if total[0] else "No message was sent to an agent in this time.",
    )


def _outcomes(sent: Sequence[SentMessages]) -> tuple[int, ...]:
    """Return how many were sent, are done, wait, failed, became dead letters and were cancelled."""
    groups = (
        (Status.DONE,),
        (Status.PENDING, Status.LEASED, Status.HELD),
        (Status.FAILED,),
        (Status.DEAD, Status.EXPIRED),
        (Status.CANCELLED,),
    )
    counts = (sum(one.times for one in sent if one.status in group) for group in groups)
    return sum(one.times for one in sent), *counts


def _cost(one: StepFigures | PairActivity) -> Dollars | None:
    return None if one.unpriced and not one.cost_microusd else Dollars(one.cost_microusd / MICRO)


def _whole(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _shown(cell: Cell) -> str:
    if cell is None or isinstance(cell, str):
        return "unknown" if cell is None else cell
    if isinstance(cell, Percent):
        return f"{cell:.0%}"
    return dollars(cell) if isinstance(cell, Dollars) else f"{cell:,}"
