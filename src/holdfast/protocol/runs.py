"""What is stored of a run: itself, what was seen, what its gates said, what was violated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from holdfast.protocol.model import Protocol, Status


class RunStatus(StrEnum):
    """How a run stands in the history."""

    ACTIVE = "active"
    COMPLETE = "complete"
    ORPHANED = "orphaned"
    """Untouched for a day; kept in the history and no longer in the way."""


class Source(StrEnum):
    """Who vouches for a piece of evidence."""

    CLAIMED = "claimed"
    """The agent said so."""
    HOOK = "hook"
    """The agent's own hook showed it happening."""
    SERVER = "server"
    """Holdfast looked for itself."""


class EvidenceKind(StrEnum):
    """What a piece of evidence shows. Agents may record others; those are claims."""

    FILE_READ = "file_read"
    """subject: the path within the worktree; detail: the sha256 of the file when it was read."""
    TOOL_CALLED = "tool_called"
    """subject: the tool's name."""
    REPORT = "report"
    """subject: the path of a report of this run."""
    CONTENT_HASH = "content_hash"
    """subject: a path; detail: the sha256 that the agent gave, which the server compared."""


@dataclass(frozen=True, slots=True)
class Run:
    """One working session of an agent in one worktree."""

    row_id: int
    id: str
    """YYYY-MM-DD-session-NN."""
    root: str
    """The canonical URI of the worktree's top directory."""
    project: str
    """What its worktrees and copies share."""
    protocol: str
    """The protocol's name."""
    definition: str
    """The protocol as it was when the run began, as JSON: a later edit does not move the gates of a run."""
    objective: str
    branch: str | None
    starting_commit: str | None
    phase: str
    held_from: str | None
    held_by: str | None
    status: str
    started_at: int
    touched_at: int
    ended_at: int | None = None
    end_commit: str | None = None
    summary: str | None = None
    decisions: str | None = None
    """Key decisions, as a JSON list."""
    notes: str | None = None
    """For the next session."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something that was seen or said."""

    gate: str | None
    kind: str
    subject: str
    detail: str
    source: str
    at: int


@dataclass(frozen=True, slots=True)
class GateResult:
    """What a gate said when it was last checked."""

    gate: str
    status: str
    evidence: str
    checked_at: int
    fingerprint: str | None = None
    """Of the changed files, for gates whose answer is about them."""


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that was done against the protocol."""

    at: int
    phase: str
    requirement: str
    severity: str
    recovery: str | None
    gate: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What checking a gate found."""

    status: Status
    evidence: str
    """What was seen, in one line."""
    missing: str = ""
    """What is missing, in one line, where it failed."""
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything a check may look at."""

    worktree: Path
    run: Run
    evidence: tuple[Evidence, ...]
    trusted: bool
    """Whether the owner trusts this content of the project: only then are its commands run."""
    skip_qa: bool = False


@dataclass(frozen=True, slots=True)
class RunView:
    """A run with everything that is known of it."""

    run: Run
    protocol: Protocol
    gates: Mapping[str, GateResult]
    evidence: tuple[Evidence, ...] = ()
    violations: tuple[Violation, ...] = ()


@dataclass(frozen=True, slots=True)
class SerenaAnswer:
    """What asking for Serena found."""

    configured: bool
    answers: bool
    detail: str
