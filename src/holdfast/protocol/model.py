"""Rules of a protocol: phases, the gates between them, and their checks. Pure, no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum

from holdfast.lazy_dataclass import dataclass

INIT = "INIT"
WORKING = "WORKING"
COMPLETE = "COMPLETE"
BLOCKED = "BLOCKED"
VIOLATION = "VIOLATION"
ALL = "ALL"

NOT_EVIDENCE = frozenset(
    {"n/a", "na", "none", "todo", "tbd", "done", "ok", "yes", "true", "x", "skip", "skipped", "pending", "later", "-"}
)
"""Placeholders that agents used to pass gates without doing the work."""


class Level(StrEnum):
    """Requirement level of a step (RFC 2119)."""

    MUST = "MUST"
    MUST_NOT = "MUST NOT"
    SHOULD = "SHOULD"
    MAY = "MAY"

    @property
    def binding(self) -> bool:
        """Whether ignoring it is a violation."""
        return self in (Level.MUST, Level.MUST_NOT)


class Status(StrEnum):
    """Result of verifying a gate."""

    PASS = "PASS"  # noqa: S105 - not a password
    FAIL = "FAIL"
    SKIPPED = "SKIPPED"
    """Not needed; the evidence says why."""

    @property
    def met(self) -> bool:
        """Whether the run may pass the gate."""
        return self is not Status.FAIL


class Part(StrEnum):
    """Which half of a session a step belongs to."""

    START = "start"
    END = "end"


class CheckKind(StrEnum):
    """Kinds of checks that Holdfast can make itself."""

    FILE_EXISTS = "file_exists"
    """paths: at least one exists and is not empty; globs allowed."""
    FILE_READ = "file_read"
    """paths: each that exists was read, as a hook saw or a content hash proves."""
    TOOL_CALLED = "tool_called"
    """names: one of these tools answered, as a hook saw; globs allowed."""
    COMMAND = "command"
    """argv: exits with 0. Only from the project's trusted configuration."""
    SERENA = "serena"
    """Serena answers; skipped if none is configured."""
    GIT_STATE = "git_state"
    """Branch and starting commit are known."""
    NOT_ON_BRANCH = "not_on_branch"
    """names: HEAD is on none of these branches."""
    SESSION_LOG = "session_log"
    """paths: the run's log exists, under its id, in one of these folders or as one of these patterns names it."""
    DOCS_CHANGED = "docs_changed"
    """paths: each was changed since the run began."""
    REPORT = "report"
    """paths: a report of this run, bound to it by front matter or recorded evidence; or the change is docs-only."""
    COMMITTED = "committed"
    """HEAD moved since the run began, the commit exists, the tree is clean."""
    CLAIM = "claim"
    """Recorded evidence is enough; only if the protocol says so."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing to verify."""

    kind: CheckKind
    paths: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    timeout_s: int = 300
    optional: bool = False
    """Whether paths that the starting commit does not have are not asked for."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Condition that must be met before a run goes on."""

    name: str
    level: Level
    blocking: bool
    checks: tuple[Check, ...]
    recovery: tuple[str, ...]
    """Steps that meet the gate, in order."""


@dataclass(frozen=True, slots=True)
class Transition:
    """Step from one phase to the next, through a gate."""

    source: str
    target: str
    gate: Gate


@dataclass(frozen=True, slots=True)
class ChecklistItem:
    """One item of the checklist, worded as in the protocol's document."""

    part: Part
    level: Level
    step: str
    gate: str | None = None
    """The gate that verifies it; None if no gate does."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """A protocol: its transitions in order, from INIT through WORKING to COMPLETE."""

    name: str
    transitions: tuple[Transition, ...]
    checklist: tuple[ChecklistItem, ...] = ()

    @property
    def phases(self) -> tuple[str, ...]:
        return (INIT, *(step.target for step in self.transitions))

    @property
    def gates(self) -> tuple[Gate, ...]:
        return tuple(step.gate for step in self.transitions)

    def gate(self, name: str) -> Gate | None:
        return next((gate for gate in self.gates if gate.name == name), None)

    def next_step(self, phase: str) -> Transition | None:
        """Return the transition out of a phase."""
        return next((step for step in self.transitions if step.source == phase), None)

    def before(self, phase: str) -> tuple[Gate, ...]:
        """Return the gates that a run in this phase has passed."""
        order = self.phases
        behind = order.index(phase) if phase in order else 0
        return self.gates[:behind]

    def gates_until(self, only_before_work: bool) -> tuple[Gate, ...]:
        """Return the gates before work, or all of them."""
        return self.before(WORKING) if only_before_work else self.gates

    def part_of(self, gate: str) -> Part:
        """Return whether a gate belongs to the start or to the end of a session."""
        return Part.START if gate in {one.name for one in self.before(WORKING)} else Part.END


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a run stands: its phase, its gate results, and the gate that blocks it."""

    phase: str = INIT
    held_from: str | None = None
    """The phase to continue from, while it is BLOCKED or in VIOLATION."""
    held_by: str | None = None
    """The gate that must be met to go on."""
    gates: Mapping[str, Status] = field(default_factory=dict)

    @property
    def at(self) -> str:
        """The phase the run has reached, blocked or not."""
        return self.held_from or self.phase


def open_gates(protocol: Protocol, standing: Standing) -> list[Gate]:
    """Return the blocking gates that are not met, in order."""
    return _unmet(protocol.gates, standing)


def blocked_until(protocol: Protocol, standing: Standing) -> list[str]:
    """Return the blocking gates between here and work (or, from work on, the end)."""
    order = protocol.phases
    here, working = order.index(standing.at), order.index(WORKING)
    until = working if here < working else len(order) - 1
    return [gate.name for gate in _unmet(protocol.gates[here:until], standing)]


def verified(standing: Standing, gate: str, status: Status) -> Standing:
    """Return the standing after a gate was checked; a run that only this gate blocked continues."""
    gates = {**standing.gates, gate: status}
    if standing.held_by == gate and status.met and standing.held_from is not None:
        return Standing(standing.held_from, None, None, gates)
    return Standing(standing.phase, standing.held_from, standing.held_by, gates)


def advance(protocol: Protocol, standing: Standing) -> Standing | None:
    """Return the standing in the next phase; None if a gate blocks the run, or there is no next phase."""
    step = protocol.next_step(standing.phase)
    if step is None or _unmet((step.gate,), standing):
        return None
    return Standing(step.target, None, None, standing.gates)


def held(standing: Standing, gate: Gate, phase: str = BLOCKED) -> Standing:
    """Return the standing of a run blocked by a gate; it continues from there once the gate is met."""
    return Standing(phase, standing.at, gate.name, standing.gates)


def unmet_before_work(protocol: Protocol, standing: Standing) -> Gate | None:
    """Return the first unmet blocking gate before WORKING, which makes a commit too early; None from work on."""
    order = protocol.phases
    begun = order.index(standing.at) >= order.index(WORKING)
    return None if begun else next(iter(_unmet(protocol.before(WORKING), standing)), None)


def says_something(evidence: str) -> bool:
    """Return whether a text is more than a placeholder."""
    text = evidence.strip().strip("`*_[]().!").strip().lower()
    return len(text) > 1 and text not in NOT_EVIDENCE and not text.startswith(("n/a ", "todo", "tbd"))


def run_id(day: str, number: int) -> str:
    """Return YYYY-MM-DD-session-NN, with three digits past 99."""
    return f"{day}-session-{number:02d}"


def _unmet(gates: Sequence[Gate], standing: Standing) -> list[Gate]:
    """Return those of these gates that block."""
    return [gate for gate in gates if gate.blocking and not standing.gates.get(gate.name, Status.FAIL).met]
