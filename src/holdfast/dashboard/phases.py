"""A run of a protocol as its phases: what is done, where it stands, what blocks it and why. Pure."""

from __future__ import annotations

from holdfast.lazy_dataclass import dataclass
from holdfast.protocol.model import COMPLETE, Gate, Status
from holdfast.protocol.runs import Evidence, EvidenceKind, GateResult, Run, RunRecord, RunStatus, Violation

MOST_EVIDENCE = 6
"""Pieces of evidence shown of a gate, and of those that belong to none."""
ENDED = {
    RunStatus.COMPLETE.value: "complete",
    RunStatus.ORPHANED.value: "orphaned",
    RunStatus.ABORTED.value: "aborted",
}
SAID = {Status.PASS.value: "met", Status.SKIPPED.value: "not needed", Status.FAIL.value: "not met"}


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase, and the gate that leads to it."""

    name: str
    state: str
    """done, here, blocked or later."""
    gate: Gate | None = None
    result: GateResult | None = None
    said: str = ""
    """The gate's result in words."""
    blocks: bool = False
    """Whether this gate holds the run up."""
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run, ready to be shown."""

    run: Run
    state: str
    """In a few words."""
    phases: tuple[Phase, ...]
    violations: tuple[Violation, ...]
    evidence: tuple[Evidence, ...]
    """What belongs to no gate, the latest first."""
    more_evidence: int


def shown_run(record: RunRecord) -> ShownRun:
    """Return a run with its phases."""
    run, order = record.run, record.protocol.phases
    at = run.held_from or run.phase
    here = order.index(at) if at in order else 0
    over = run.status != RunStatus.ACTIVE.value
    phases = [Phase(order[0], _state(0, here, run, over=over))]
    for number, step in enumerate(record.protocol.transitions, 1):
        result = record.result(step.gate.name)
        evidence = [one for one in reversed(record.evidence) if one.gate == step.gate.name][:MOST_EVIDENCE]
        blocks = run.held_by == step.gate.name and not over
        said = SAID.get(result.status, "") if result is not None else ""
        phases.append(
            Phase(step.target, _state(number, here, run, over=over), step.gate, result, said, blocks, tuple(evidence))
        )
    loose = [one for one in reversed(record.evidence) if one.gate is None and one.kind != EvidenceKind.TIPS.value]
    return ShownRun(
        run,
        _words(run),
        tuple(phases),
        record.violations,
        tuple(loose[:MOST_EVIDENCE]),
        max(0, len(loose) - MOST_EVIDENCE),
    )


def _state(number: int, here: int, run: Run, *, over: bool) -> str:
    if number < here or (over and number == here and run.phase == COMPLETE):
        return "done"
    if number > here:
        return "later"
    return "blocked" if run.held_by and not over else "here"


def _words(run: Run) -> str:
    if run.status in ENDED:
        return ENDED[run.status]
    return f"blocked at {run.held_by}" if run.held_by else f"in phase {run.phase}"
