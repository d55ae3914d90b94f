"""Figures of briefings: what agents got back of what was known, whether they went on, and how long sessions lived."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from holdfast.briefing.queries import breaks
from holdfast.briefing.queries import figures as queries
from holdfast.briefing.queries.breaks import Break
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Store, Tx

MOST_BREAKS = 100
"""Breaks whose content is looked at, the latest."""
TASK = frozenset({"request", "first", "requests"})
SEEN = 30
"""Characters of a step by which it is known again in a text."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """Of one kind of thing that agents knew, how much they were told."""

    kind: str
    """task, changed, read or steps."""
    known: int
    told: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """What agents got back since a time."""

    by_step: tuple[tuple[int, int], ...]
    """How often, in each step of time in which there was one."""
    after: tuple[tuple[str, int], ...]
    """How often after what, the most often first."""
    times: int
    known: int
    """Of how many it is known what their session did afterwards."""
    taken_up: int
    """In how many the session did something afterwards."""
    recalled: tuple[Recalled, ...]
    compared: int
    """Breaks of which both what was known and what was told is kept."""


class BriefingFigures:
    """Counts recoveries and sessions in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def recovered(self, begin: int, step_ms: int) -> Recovered:
        """Return what agents got back since a time."""

        def read(tx: Tx) -> tuple[list[queries.RecoveredThings], tuple[int, int], list[Break]]:
            kept = breaks.kept_since(tx, begin, MOST_BREAKS)
            return queries.told(tx, begin, step_ms), queries.taken_up(tx, begin), kept

        told, (known, taken_up), kept = await self._store.read(read)
        steps, after = Counter[int](), Counter[str]()
        for one in told:
            steps[one.step] += one.times
            after[one.occasion] += one.times
        return Recovered(
            tuple(sorted(steps.items())),
            tuple(after.most_common()),
            sum(steps.values()),
            known,
            taken_up,
            recalled(kept),
            len(kept),
        )

    async def lifetimes(self, since: int, bounds: Sequence[int]) -> list[int]:
        """Return how many sessions seen since a time lived how long: up to each bound, and longer."""
        return await self._store.read(lambda tx: queries.lifetimes(tx, since, bounds))


def recalled(kept: Iterable[Break]) -> tuple[Recalled, ...]:
    """Return how much of what was known at these breaks stands in what was told."""
    known, told = Counter[str](), Counter[str]()
    for one in kept:
        for kind, is_told in _things(one):
            known[kind] += 1
            told[kind] += is_told
    return tuple(Recalled(kind, times, told[kind]) for kind, times in known.items())


def _things(one: Break) -> Iterator[tuple[str, bool]]:
    """Yield each thing that was known, and whether it was told; what is told in other words counts as not told."""
    if one.knew is None or one.told is None:
        return
    if one.knew.request is not None:
        yield "task", not TASK.isdisjoint(one.kinds)
    yield from (("changed", file.path in one.told) for file in one.knew.changed)
    yield from (("steps", step.text[:SEEN] in one.told) for step in one.knew.steps if step.status != "completed")
    yield from (("read", file.path in one.told) for file in one.knew.read)
