"""Figures of briefings: how much of what was known agents got back, and how long their sessions lived."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from holdfast.briefing.break_records import BreakRecords
from holdfast.briefing.knowledge import KnownCount
from holdfast.briefing.queries import breaks
from holdfast.briefing.queries import figures as queries
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Store, Tx

MOST_BREAKS = 100
"""Breaks whose content is looked at, the latest."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """What agents got back since a time."""

    by_step: tuple[tuple[int, int], ...]
    """How often, for each interval that had one."""
    after: tuple[tuple[str, int], ...]
    """How often after what, the most often first."""
    times: int
    known: int
    """For how many it is known what their session did afterwards."""
    taken_up: int
    """In how many the session did something afterwards."""
    recalled: tuple[KnownCount, ...]
    compared: int
    """Breaks of which both what was known and what was told is kept."""


class BriefingFigures:
    """Counts recoveries and sessions in the store."""

    def __init__(self, store: Store, records: BreakRecords) -> None:
        self._store = store
        self._records = records

    async def recovered(self, begin: int, step_ms: int) -> Recovered:
        """Return what agents got back since a time."""

        def read(tx: Tx) -> tuple[list[queries.RecoveredThings], tuple[int, int], list[list[KnownCount]]]:
            kept = breaks.counts_since(tx, begin, MOST_BREAKS)
            return queries.told(tx, begin, step_ms), queries.taken_up(tx, begin), kept

        await self._records.finish()
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


def recalled(kept: Iterable[Iterable[KnownCount]]) -> tuple[KnownCount, ...]:
    """Return how many things of each kind were known at these breaks, and how many of them were told."""
    had, told = Counter[str](), Counter[str]()
    for one in kept:
        for count in one:
            had[count.kind] += count.had
            told[count.kind] += count.told
    return tuple(KnownCount(kind, times, told[kind]) for kind, times in had.items())
