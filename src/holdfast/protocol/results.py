"""What the protocol's operations return. Hooks need none of it, so it is imported when a tool first does."""

from __future__ import annotations

from holdfast.lazy_dataclass import dataclass
from holdfast.protocol.evidence import Judged
from holdfast.protocol.model import Gate, Protocol, Standing
from holdfast.protocol.project.settings import Enforcement
from holdfast.protocol.runs import ActiveRun, Run, Verdict


@dataclass(frozen=True, slots=True)
class Started:
    """A run that began."""

    run: Run
    protocol: Protocol
    enforcement: Enforcement


@dataclass(frozen=True, slots=True)
class CheckedGate:
    """The result of a gate, and where the run stands after it."""

    gate: Gate
    verdict: Verdict
    standing: Standing


@dataclass(frozen=True, slots=True)
class Validation:
    """The results of all gates of a run, or of those before its work."""

    run: Run
    gates: tuple[CheckedGate, ...]


@dataclass(frozen=True, slots=True)
class Advanced:
    """A run that went on, and the gates that it passed."""

    active: ActiveRun
    passed: tuple[CheckedGate, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that is complete or given up, with its last commit and the gates that it passed at the end."""

    run: Run
    commit: str | None
    passed: tuple[CheckedGate, ...]
    given_up: bool = False


@dataclass(frozen=True, slots=True)
class Recorded:
    """Evidence that was stored for a gate."""

    run: Run
    gate: Gate
    judged: Judged


@dataclass(frozen=True, slots=True)
class Blocked:
    """What a run still needs, in order."""

    active: ActiveRun
    missing: tuple[tuple[Gate, Verdict], ...]
