"""What a run tells: a line per fault, and for each violation the shortest excerpt that shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.history import History, Outcome
from tests.chaos.violation import Violation

EXCERPTS = 6
"""How many violations of an episode are shown; the rest are counted."""
AROUND = 6
"""How many lines of an excerpt."""


@dataclass(slots=True)
class Result:
    """What came of one episode."""

    engine: str
    fault: str
    seconds: float
    history: History
    violations: list[Violation]
    folder: Path
    impossible: str = ""
    broken: str = ""
    """Why the episode itself could not be carried out: a fault of the test, or of a machine under load."""
    notes: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not self.violations and not self.broken


HEAD = f"{'engine':9}{'fault':17}{'seconds':>8}{'operations':>11}{'ok':>7}{'refused':>8}{'unknown':>8}  violations"


def line(result: Result) -> str:
    """An episode as a line of the table."""
    begin = f"{result.engine:9}{result.fault:17}{result.seconds:8.1f}"
    if result.impossible:
        return f"{begin}  not possible here: {result.impossible}"
    history = result.history
    counts = (
        f"{len(history):11}{history.count(Outcome.OK):7}{history.count(Outcome.REFUSED):8}"
        f"{history.count(Outcome.UNKNOWN, Outcome.UNANSWERED):8}"
    )
    kinds = Counter(violation.check for violation in result.violations)
    found = ", ".join(f"{name} {count}" for name, count in kinds.most_common()) or "none"
    return f"{begin}{counts}  {f'could not be carried out: {result.broken}' if result.broken else found}"


def excerpts(result: Result, repeat: str) -> Iterator[str]:
    """What was found, with the operations that show it and how to see it again."""
    if result.clean:
        return
    yield f"\n{result.engine}, {result.fault}: {len(result.violations)} violations. Repeat with: {repeat}"
    yield f"History, plan and logs: {result.folder}"
    shown: Counter[str] = Counter()
    for violation in result.violations:
        shown[violation.check] += 1
        if shown[violation.check] > 2 or sum(min(count, 2) for count in shown.values()) > EXCERPTS:
            continue
        yield f"  {violation.check}: {violation.text[:600]}"
        yield from (f"    {told}" for told in _excerpt(result.history, violation))


def _excerpt(history: History, violation: Violation) -> Iterator[str]:
    ops = list(history)
    if not violation.ops or not ops:
        return
    since = ops[0].invoked
    begin = min(op.invoked for op in violation.ops)
    end = max(op.completed or op.invoked for op in violation.ops)
    lines = [(op.invoked, op.line(since)) for op in violation.ops]
    lines += [
        (at, f"{at - since:7.3f}         nemesis   {text}") for at, text in history.notes if begin - 1 <= at <= end + 1
    ]
    yield from (text for _, text in sorted(lines)[:AROUND])
