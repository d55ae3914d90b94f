"""Data of a run: the run itself, its evidence, gate results and violations, and the active run with its standing."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from holdfast.lazy_dataclass import dataclass
from holdfast.protocol import model
from holdfast.protocol.errors import UnknownGate
from holdfast.protocol.model import Gate, Protocol, Standing, Status
from holdfast.protocol.project.settings import Enforcement, ProjectProtocol
from holdfast.store.calls import CallKey
from holdfast.text.quoting import in_quotes, quoted

MAX_NAMED = 4
MAX_STEP_CHARS = 500
MAX_STEPS_CHARS = 380
"""Characters of a recovery step, which the project may have worded."""


class RunStatus(StrEnum):
    """State of a run in the history."""

    ACTIVE = "active"
    COMPLETE = "complete"
    ORPHANED = "orphaned"
    """Untouched for a day; kept in the history, no longer blocking a new run."""
    ABORTED = "aborted"
    """Given up by its agent, with a reason."""


class Source(StrEnum):
    """Where a piece of evidence comes from."""

    CLAIMED = "claimed"
    """The agent said so."""
    HOOK = "hook"
    """The agent's own hook reported it."""
    SERVER = "server"
    """Holdfast checked it itself."""


class EvidenceKind(StrEnum):
    """Kind of a piece of evidence. Agents may record other kinds; those are claims."""

    FILE_READ = "file_read"
    """subject: the path within the worktree; detail: the sha256 of the file when it was read."""
    TOOL_CALLED = "tool_called"
    """subject: the tool's name."""
    REPORT = "report"
    """subject: the path of a report of this run."""
    CONTENT_HASH = "content_hash"
    """subject: a path; detail: the sha256 that the agent gave and the server compared."""
    TIPS = "tips"
    """detail: where HEAD and the branches are known to have been, as JSON; stored by the server alone."""


@dataclass(frozen=True, slots=True)
class Run:
    """One working session of an agent in one worktree."""

    row_id: int
    id: str
    """YYYY-MM-DD-session-NN."""
    root: str
    """The canonical URI of the worktree's top directory."""
    project: str
    """The project key that its worktrees and copies share."""
    protocol: str
    """The protocol's name."""
    definition: str
    """The protocol as JSON, as it was when the run began: a later edit does not change the gates of a run."""
    objective: str = ""
    branch: str | None = None
    starting_commit: str | None = None
    phase: str = model.INIT
    held_from: str | None = None
    held_by: str | None = None
    status: str = RunStatus.ACTIVE
    started_at: int = 0
    touched_at: int = 0
    ended_at: int | None = None
    end_commit: str | None = None
    summary: str | None = None
    decisions: str | None = None
    """Key decisions, as a JSON list."""
    notes: str | None = None
    """For the next session."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something that was seen, or that an agent said."""

    gate: str | None
    kind: str
    subject: str
    detail: str
    source: str
    at: int


@dataclass(frozen=True, slots=True)
class GateResult:
    """The last result of a gate."""

    gate: str
    status: str
    evidence: str
    checked_at: int
    fingerprint: str | None = None
    """Fingerprint of the changed files, for gates whose result depends on them."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A step taken against the protocol."""

    at: int
    phase: str
    requirement: str
    severity: str
    recovery: str | None
    gate: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of checking a gate."""

    status: Status
    evidence: str
    """What was found, in one line."""
    missing: str = ""
    """What is missing, in one line, if it failed."""
    fingerprint: str | None = None

    @property
    def reason(self) -> str:
        """Why the gate failed."""
        return self.missing or self.evidence


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything a check may use."""

    worktree: Path
    run: Run
    evidence: tuple[Evidence, ...]
    trusted: bool
    """Whether the owner trusts the project's present content: only then are its commands run."""
    skip_qa: bool = False


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run with all that is stored of it."""

    run: Run
    protocol: Protocol
    gates: tuple[GateResult, ...]
    evidence: tuple[Evidence, ...] = ()
    violations: tuple[Violation, ...] = ()

    def result(self, gate: str | None) -> GateResult | None:
        """Return the last result of a gate; None if it was not checked."""
        return next((result for result in self.gates if result.gate == gate), None)


def recovery_steps(gate: Gate) -> str:
    """Return the steps that meet a gate, numbered, in one line."""
    return " ".join(f"{number}. {in_quotes(step, MAX_STEP_CHARS)}" for number, step in enumerate(gate.recovery, 1))


@dataclass(frozen=True, slots=True)
class ActiveRun:
    """An active run, its protocol and its current standing."""

    run: Run
    protocol: Protocol
    standing: Standing
    project: ProjectProtocol
    worktree: Path
    key: CallKey | None = None
    """Key of the call that loaded it; each write of that call first checks that the call was not answered before."""
    ending: bool = False
    """Whether the call is to end it: a blocking gate that is not met is a violation then."""
    skip_qa: bool = False

    @property
    def enforcement(self) -> Enforcement:
        """What is done about a commit that is too early."""
        return self.project.enforcement

    @property
    def commits_wait_for(self) -> Gate | None:
        """The gate that makes a commit too early; None if commits are free, or nobody minds."""
        if self.enforcement is Enforcement.OFF:
            return None
        return model.unmet_before_work(self.protocol, self.standing)

    def too_early(self, gate: Gate) -> str:
        """Return what an agent is told that commits before a gate is met: short enough that no quotation is cut."""
        steps = recovery_steps(gate)
        if len(steps) > MAX_STEPS_CHARS:
            steps = f"1. {in_quotes(gate.recovery[0], MAX_STEPS_CHARS - 100)} (every step: get_blocked_reason)"
        return (
            f"A commit comes too early: {gate.name} of session {self.run.id} is not met."
            f" Next: {steps} Then call validate_gate with phase {gate.name}."
        )

    def described(self, longest: int) -> str:
        """Return which run this is and where it stands, with up to `longest` characters of its objective."""
        text = f"session {self.run.id} ({quoted(self.run.objective, longest)}) is in phase {self.standing.phase}."
        return text + (f" It is blocked until {self.standing.held_by} is met." if self.standing.held_by else "")

    def moved(self, standing: Standing) -> ActiveRun:
        """Return the same run with another standing."""
        return replace(self, standing=standing)

    def gate(self, name: str) -> Gate:
        """Return the gate of this name; raises UnknownGate."""
        gate = self.protocol.gate(name)
        if gate is None:
            names = ", ".join(one.name for one in self.protocol.gates)
            raise UnknownGate(f"There is no gate {in_quotes(name, 64)}.", recovery=f"Gates: {names}; or ALL.")
        return gate

    def still_to_meet(self, longest: int) -> tuple[str, str]:
        """What blocks and, in up to `longest` characters, the first step to resolve it; each empty if there is none."""
        names = model.blocked_until(self.protocol, self.standing)
        if not names:
            return "", ""
        named = ", ".join(names[:MAX_NAMED]) + (" …" if len(names) > MAX_NAMED else "")
        steps = self.gate(names[0]).recovery
        return f"Gates to meet: {named}.", f" Next: {in_quotes(steps[0], longest)}" if steps else ""


@dataclass(frozen=True, slots=True)
class SerenaAnswer:
    """Result of asking Serena."""

    configured: bool
    answers: bool
    detail: str
