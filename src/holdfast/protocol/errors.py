"""What a protocol refuses, each with a code and the steps that repair it."""

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
    """The evidence says nothing, or it is not true."""

    code = "E_EVIDENCE_REJECTED"


class ProtocolInvalid(HoldfastError):
    """The project's protocol cannot be used as it is written."""

    code = "E_PROTOCOL_INVALID"


class NoProject(HoldfastError):
    """The call names no project directory on this machine."""

    code = "E_NO_PROJECT"
