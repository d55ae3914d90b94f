"""Analysis: how a session went, from its steps only: counts, revisions, the shape of its branches, its pace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from holdfast.reasoning.results import Step
from holdfast.times import iso

PAUSE_MS = 10 * 60 * 1000
"""A longer gap is a break, not slow thinking."""

MAX_REVISED = 5
BRANCHES_SHOWN = 100


def analyze(steps: Sequence[Step]) -> dict[str, Any]:
    """Return statistics of a session, without reading its thoughts' texts."""
    if not steps:
        return {"thoughts": {"total": 0}}
    return {
        "thoughts": _counts(steps),
        "revisions": _revisions(steps),
        "branches": _branches(steps),
        "pace": _pace(steps),
    }


def _counts(steps: Sequence[Step]) -> dict[str, Any]:
    on_branches = sum(step.branch_id is not None for step in steps)
    lengths = [step.length for step in steps]
    return {
        "total": len(steps),
        "mainLine": len(steps) - on_branches,
        "onBranches": on_branches,
        "characters": sum(lengths),
        "medianCharacters": int(median(lengths)),
    }


def _revisions(steps: Sequence[Step]) -> dict[str, Any]:
    revised = Counter(step.revises for step in steps if step.revises is not None)
    return {
        "total": revised.total(),
        "revisedThoughts": len(revised),
        "mostRevised": [
            {"thoughtNumber": number, "times": times} for number, times in revised.most_common(MAX_REVISED)
        ],
    }


def _branches(steps: Sequence[Step]) -> dict[str, Any]:
    """Return where each branch starts, and how deep branches are nested."""
    line_of = {step.number: step.branch_id for step in steps}
    lengths: Counter[str] = Counter()
    start: dict[str, int] = {}
    for step in steps:
        if step.branch_id is not None and step.branch_from is not None:
            lengths[step.branch_id] += 1
            start.setdefault(step.branch_id, step.branch_from)
    depth: dict[str, int] = {}
    for branch, number in start.items():  # a branch leaves from an earlier thought, so its parent came before it
        parent = line_of.get(number)
        depth[branch] = depth.get(parent, 0) + 1 if parent else 1
    shape = [
        {"branchId": branch, "fromThought": start[branch], "thoughtCount": lengths[branch], "depth": depth[branch]}
        for branch in list(start)[:BRANCHES_SHOWN]
    ]
    return {"total": len(start), "deepest": max(depth.values(), default=0), "shape": shape}


def _pace(steps: Sequence[Step]) -> dict[str, Any]:
    first, last = steps[0].created_at, steps[-1].created_at
    gaps = [max(0, later.created_at - earlier.created_at) for earlier, later in pairwise(steps)]
    thinking = [gap for gap in gaps if gap <= PAUSE_MS]
    pace: dict[str, Any] = {"first": iso(first), "last": iso(last), "breaks": len(gaps) - len(thinking)}
    if gaps:
        pace["longestGapSeconds"] = max(gaps) // 1000
    if thinking:
        pace["medianGapSeconds"] = round(median(thinking) / 1000, 1)
        pace["activeMinutes"] = round(sum(thinking) / 60_000, 1)
    return pace
