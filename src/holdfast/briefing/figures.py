"""Figures of briefings: what agents recovered, whether they continued it, and how long their sessions lived."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from holdfast.briefing.queries import figures as queries
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Store, Tx


@dataclass(frozen=True, slots=True)
class Recovered:
    """What agents got back since a time."""

    by_step: tuple[tuple[int, int], ...]
    """How often, for each interval that had one."""
    after: tuple[tuple[str, int], ...]
    """How often after what, the most often first."""
    kinds: tuple[tuple[str, int], ...]
    """How often each kind of thing was in a briefing, the most frequent first."""
    times: int
    known: int
    """For how many it is known what their session did afterwards."""
    taken_up: int
    """In how many the session did something afterwards."""


class BriefingFigures:
    """Counts recoveries and sessions in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def recovered(self, begin: int, step_ms: int) -> Recovered:
        """Return what agents got back since a time."""

        def read(tx: Tx) -> tuple[list[queries.RecoveredThings], tuple[int, int]]:
            return queries.told(tx, begin, step_ms), queries.taken_up(tx, begin)

        told, (known, taken_up) = await self._store.read(read)
        steps, after, kinds = Counter[int](), Counter[str](), Counter[str]()
        for one in told:
            steps[one.step] += one.times
            after[one.occasion] += one.times
            for kind in set(json.loads(one.what)):
                kinds[str(kind)] += one.times
        return Recovered(
            tuple(sorted(steps.items())),
            tuple(after.most_common()),
            tuple(kinds.most_common()),
            sum(steps.values()),
            known,
            taken_up,
        )

    async def lifetimes(self, since: int, bounds: Sequence[int]) -> list[int]:
        """Return how many sessions seen since a time lived how long: up to each bound, and longer."""
        return await self._store.read(lambda tx: queries.lifetimes(tx, since, bounds))
