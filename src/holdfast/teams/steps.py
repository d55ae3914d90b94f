"""Which part of an agent's transcript belongs to which ask, by the times of both. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

from holdfast.agents.transcript_entries import Answered, Called, Compacted, Entry, KeptEntry, Said
from holdfast.teams.model import Ask
from holdfast.teams.results import Step

MOST_GIVEN, MOST_TEXT = 300, 600
"""Characters of a call, and of what was said or answered."""


def by_ask(asks: Sequence[Ask], kept: Sequence[KeptEntry], most: int) -> dict[str, tuple[tuple[Step, ...], int]]:
    """Return for each ask, by id, its last steps and how many more there are; at most `most` steps in total.

    `kept` has the latest entry first."""
    begun = sorted((ask for ask in asks if ask.started_at is not None), key=lambda ask: ask.started_at or 0)
    starts = [ask.started_at or 0 for ask in begun]
    entries: dict[str, list[Entry]] = {}
    for one in reversed(kept):
        place = bisect_right(starts, one.entry.at) - 1 if one.entry.at is not None else -1
        if place >= 0:
            entries.setdefault(begun[place].id, []).append(one.entry)
    steps = {ask.id: _steps(entries.get(ask.id, []), ask) for ask in asks}
    each = max(3, most // max(1, sum(bool(found) for found in steps.values())))
    return {name: (tuple(found[-each:]), max(0, len(found) - each)) for name, found in steps.items()}


def _steps(entries: Sequence[Entry], ask: Ask) -> list[Step]:
    found: list[Step] = []
    calls: dict[str, int] = {}
    for at, part in _parts(entries):
        if isinstance(part, Called):
            calls[part.call_id] = len(found)
            given = part.command or part.path or part.text
            found.append(Step("call", at, part.tool, given[:MOST_GIVEN], changed(part)))
        elif isinstance(part, Answered) and part.call_id in calls:
            place = calls[part.call_id]
            outcome = "refused" if part.refused is not None else "failed" if part.failed else ""
            text = found[place].text or part.text[:MOST_TEXT]
            found[place] = replace(found[place], text=text, outcome=outcome)
        elif isinstance(part, Said) and part.text and part.text.strip() != (ask.answer or "").strip():
            found.append(Step("said", at, text=part.text[:MOST_TEXT]))
        elif isinstance(part, Compacted):
            found.append(Step("compacted", at))
    return found


def _parts(entries: Sequence[Entry]) -> Iterator[tuple[int | None, object]]:
    for entry in entries:
        if not entry.is_side:
            for part in entry.parts:
                yield entry.at, part


def changed(call: Called) -> str:
    """Return what an edit changed, as removed and added lines."""
    if call.replaced is None:
        return ""
    half = MOST_TEXT // 2
    old, new = (text[:half].splitlines() for text in call.replaced)
    return "\n".join([*(f"- {line}" for line in old), *(f"+ {line}" for line in new)])
