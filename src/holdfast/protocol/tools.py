"""The protocol on the wire, under the seed's names."""

from __future__ import annotations

from typing import Any

from holdfast.protocol.resources import resources
from holdfast.protocol.service import Protocols
from holdfast.wire.tools import Call, Offer, Params, Repetition, Tool

TEXT = {"type": "string"}
LIST = {"type": "array"}
YES_NO = {"type": "boolean"}


class StartParams(Params):
    """What `session_start` takes."""

    objective: str
    branch: str | None = None
    starting_commit: str | None = None


class GateParams(Params):
    """What `validate_gate` takes."""

    phase: str


class AdvanceParams(Params):
    """What `advance_phase` takes."""

    to: str | None = None


class EvidenceParams(Params):
    """What `record_evidence` takes."""

    phase: str
    evidence_type: str
    evidence: str


class EndParams(Params):
    """What `session_end` takes."""

    summary: str
    key_decisions: list[str] | None = None
    next_session_notes: str | None = None
    skip_qa: bool | None = None


class NoParams(Params):
    """What `get_blocked_reason` takes."""


def offer(protocols: Protocols) -> Offer:
    """All that the protocol puts on the wire."""
    tools = [
        _start(protocols),
        _validate(protocols),
        _advance(protocols),
        _record(protocols),
        _end(protocols),
        _blocked(protocols),
    ]
    return Offer(tools=tools, applies=protocols.applies_to, resources=resources(protocols))


def _start(protocols: Protocols) -> Tool:
    async def handle(call: Call, params: StartParams) -> dict[str, Any]:
        return await protocols.start(
            call.caller.root,
            params.objective,
            branch=params.branch,
            starting_commit=params.starting_commit,
            key=call.key,
        )

    return Tool(
        name="session_start",
        title="[Protocol] Start a working session",
        description=(
            "Start a working session under the project's protocol: phases whose gates the server verifies. Thought"
            " sessions: init."
        ),
        params=StartParams,
        output={"session_id": TEXT, "phase": TEXT, "blocked_until": LIST, "checklist": LIST},
        handler=handle,
        repetition=Repetition.STORED,
        toolset="protocol",
    )


def _validate(protocols: Protocols) -> Tool:
    async def handle(call: Call, params: GateParams) -> dict[str, Any]:
        return await protocols.validate(call.caller.root, params.phase, call.key)

    return Tool(
        name="validate_gate",
        title="[Protocol] Check a gate",
        description="Check whether a gate passes, by files, git and hooks. phase: its name, e.g. SERENA_INIT, or ALL.",
        params=GateParams,
        output={
            "phase": TEXT,
            "requirement_level": TEXT,
            "status": TEXT,
            "evidence": TEXT,
            "blocking": YES_NO,
            "message": TEXT,
        },
        handler=handle,
        repetition=Repetition.STORED,
        toolset="protocol",
    )


def _advance(protocols: Protocols) -> Tool:
    async def handle(call: Call, params: AdvanceParams) -> dict[str, Any]:
        return await protocols.advance(call.caller.root, params.to, call.key)

    return Tool(
        name="advance_phase",
        title="[Protocol] Next phase",
        description="Finish the protocol's phase and go on to the next, or as far as `to`; gates between are checked.",
        params=AdvanceParams,
        output={"session_id": TEXT, "phase": TEXT, "gates": LIST, "blocked_until": LIST, "message": TEXT},
        handler=handle,
        repetition=Repetition.STORED,
        toolset="protocol",
    )


def _record(protocols: Protocols) -> Tool:
    async def handle(call: Call, params: EvidenceParams) -> dict[str, Any]:
        return await protocols.record(call.caller.root, params.phase, params.evidence_type, params.evidence, call.key)

    return Tool(
        name="record_evidence",
        title="[Protocol] Record evidence",
        description=(
            "Record evidence for a gate, e.g. that the tests passed. evidence_type content_hash, report and commit are"
            " compared with the project; anything else is your word."
        ),
        params=EvidenceParams,
        output={"session_id": TEXT, "phase": TEXT, "recorded": YES_NO, "source": TEXT, "message": TEXT},
        handler=handle,
        repetition=Repetition.STORED,
        toolset="protocol",
    )


def _end(protocols: Protocols) -> Tool:
    async def handle(call: Call, params: EndParams) -> dict[str, Any]:
        return await protocols.end(
            call.caller.root,
            params.summary,
            key_decisions=params.key_decisions or (),
            next_session_notes=params.next_session_notes,
            skip_qa=bool(params.skip_qa),
            key=call.key,
        )

    return Tool(
        name="session_end",
        title="[Protocol] End the working session",
        description=(
            "End the working session: the remaining gates are checked, the first unmet one is named. skip_qa: for"
            " documentation alone."
        ),
        params=EndParams,
        output={"status": TEXT, "session_id": TEXT, "phase": TEXT, "commit_sha": TEXT, "message": TEXT},
        handler=handle,
        repetition=Repetition.STORED,
        toolset="protocol",
    )


def _blocked(protocols: Protocols) -> Tool:
    async def handle(call: Call, params: NoParams) -> dict[str, Any]:
        return await protocols.blocked(call.caller.root)

    return Tool(
        name="get_blocked_reason",
        title="[Protocol] What blocks",
        description="Why am I blocked: what the session still needs, in order, and how to get it.",
        params=NoParams,
        output={"session_id": TEXT, "phase": TEXT, "blocked": YES_NO, "missing": LIST, "message": TEXT},
        handler=handle,
        repetition=Repetition.IDEMPOTENT,
        toolset="protocol",
        read_only=True,
    )
