"""Errors of the protocol, each with a code and recovery steps."""

from __future__ import annotations

from holdfast.errors import Conflict, HoldfastError, NotFound


class RunActive(Conflict):
    """Session already active."""

    code = "E_SESSION_ACTIVE"


class NoRun(NotFound):
    """There is no active session in this project."""

    code = "E_NO_SESSION"


class GateUnmet(Conflict):
    """A blocking gate is not met."""

    code = "E_GATE_UNMET"


class UnknownGate(NotFound):
    """The protocol has no such gate or phase."""

    code = "E_UNKNOWN_GATE"


class EvidenceRejected(HoldfastError):
    """The evidence is meaningless or does not match the project."""

    code = "E_EVIDENCE_REJECTED"


class ProtocolInvalid(HoldfastError):
    """The project's protocol settings or document have errors."""

    code = "E_PROTOCOL_INVALID"


class NoProject(HoldfastError):
    """The call names no project directory on this machine."""

    code = "E_NO_PROJECT"
