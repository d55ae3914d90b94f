"""Effects: each is recognised by its mark, and counted against what its client was told."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.chaos.history import Op, Outcome
from tests.chaos.violation import Violation


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the fault allows that would be wrong without it."""

    leases_may_end: bool = False
    """The clock was moved, so that leases and runs may have timed out."""
    asks_may_fail: bool = False
    """The daemon or its agents were ended, so that an ask may have been run twice and given up."""
    excused: frozenset[str] = field(default_factory=frozenset)
    """Marks of effects that are known, and were named, to be lost."""


def counted(
    name: str, ops: list[Op], found: dict[str, int], given: Circumstances, *, repeated: bool = False
) -> Iterator[Violation]:
    """An acknowledged effect is there once, a refused one not at all, any other at most once.

    `repeated`: whether several operations may stand for the same effect.
    """
    by_mark: dict[str, list[Op]] = defaultdict(list)
    for op in ops:
        by_mark[op.mark].append(op)
        assert repeated or len(by_mark[op.mark]) == 1, f"two operations have the mark {op.mark}"
    for mark, same in by_mark.items():
        there = found.get(mark, 0)
        if there > 1:
            yield Violation(f"{name}-twice", f"{mark} is there {there} times", same)
        elif there == 0 and any(op.ok and not op.reply.get("repeated") for op in same) and mark not in given.excused:
            yield Violation(f"{name}-lost", f"{mark} was acknowledged and is not there", same)
        elif there == 1 and all(op.outcome is Outcome.REFUSED for op in same):
            yield Violation(f"{name}-refused", f"{mark} was refused and is there nevertheless", same)
    for mark in found.keys() - by_mark.keys():
        yield Violation(f"{name}-unasked", f"{mark} is there and no client asked for it", [])


def mark_of(text: str) -> str:
    return text.split(" ", 1)[0]


def times(texts: Iterable[str]) -> dict[str, int]:
    """How often each mark is there; the marks of the reader and of probes do not count."""
    return Counter(mark for mark in map(mark_of, texts) if "#" in mark)
