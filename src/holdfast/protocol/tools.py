"""MCP tools of the protocol."""

from __future__ import annotations

from functools import partial
from typing import Any

from pydantic import Field

from holdfast.protocol import views
from holdfast.protocol.model import ALL
from holdfast.protocol.resources import resources
from holdfast.protocol.service import Protocols
from holdfast.wire.mcp.tools import Call, Offer, Params, Repetition, Tool


class StartParams(Params):
    """What `session_start` takes."""

    objective: str = Field(description="What is to be done")
    branch: str | None = Field(None, description="Default: the present one")
    starting_commit: str | None = Field(None, description="Must be HEAD")


class GateParams(Params):
    """What `validate_gate` takes."""

    phase: str = Field(description="A gate, e.g. SERENA_INIT, or ALL")


class AdvanceParams(Params):
    """What `advance_phase` takes."""

    to: str | None = Field(None, description="As far as this; default: the next")


class EvidenceParams(Params):
    """What `record_evidence` takes."""

    phase: str = Field(description="The gate")
    evidence_type: str = Field(description="content_hash, report, commit: compared with the project; else your word")
    evidence: str = Field(description="The hash, path, commit or words")


class EndParams(Params):
    """What `session_end` takes."""

    summary: str = Field(description="What was done")
    key_decisions: list[str] | None = Field(None, description="One each")
    next_session_notes: str | None = Field(None, description="For whoever comes next")
    skip_qa: bool | None = Field(None, description="Documentation alone")
    abort: bool | None = Field(None, description="Give up: no gate is checked")


class NoParams(Params):
    """What `get_blocked_reason` takes."""


def offer(protocols: Protocols) -> Offer:
    async def start(call: Call, params: StartParams) -> dict[str, Any]:
        started = protocols.start(
            call.caller.root,
            params.objective,
            branch=params.branch,
            starting_commit=params.starting_commit,
            key=call.key,
        )
        return await call.reply(started, views.started_view)

    async def validate(call: Call, params: GateParams) -> dict[str, Any]:
        validated = protocols.validate(call.caller.root, params.phase, call.key)
        every = params.phase == ALL
        return await call.reply(
            validated, lambda of: views.validation_view(of) if every else views.gate_view(of.gates[0])
        )

    async def advance(call: Call, params: AdvanceParams) -> dict[str, Any]:
        return await call.reply(protocols.advance(call.caller.root, params.to, call.key), views.advanced_view)

    async def record(call: Call, params: EvidenceParams) -> dict[str, Any]:
        recorded = protocols.record(call.caller.root, params.phase, params.evidence_type, params.evidence, call.key)
        return await call.reply(recorded, views.recorded_view)

    async def end(call: Call, params: EndParams) -> dict[str, Any]:
        ended = protocols.end(
            call.caller.root,
            params.summary,
            key_decisions=params.key_decisions or (),
            next_session_notes=params.next_session_notes,
            skip_qa=bool(params.skip_qa),
            abort=bool(params.abort),
            key=call.key,
        )
        return await call.reply(ended, views.ended_view)

    async def blocked(call: Call, params: NoParams) -> dict[str, Any]:
        return views.blocked_view(await protocols.blocked(call.caller.root))

    writing = partial(Tool, repetition=Repetition.STORED, toolset="protocol")
    tools = [
        writing(
            name="session_start",
            title="[Protocol] Start a working session",
            description="Start a working session under the project's protocol: phases whose gates the server verifies."
            " Thought sessions: init.",
            params=StartParams,
            handler=start,
        ),
        writing(
            name="validate_gate",
            title="[Protocol] Check a gate",
            description="Check whether a gate passes, by files, git and hooks.",
            params=GateParams,
            handler=validate,
        ),
        writing(
            name="advance_phase",
            title="[Protocol] Next phase",
            description="Finish the protocol's phase and go on; the gates between are checked.",
            params=AdvanceParams,
            handler=advance,
        ),
        writing(
            name="record_evidence",
            title="[Protocol] Record evidence",
            description="Record evidence for a gate, e.g. that the tests passed.",
            params=EvidenceParams,
            handler=record,
        ),
        writing(
            name="session_end",
            title="[Protocol] End the working session",
            description="End the working session: the remaining gates are checked, the first unmet one is named.",
            params=EndParams,
            handler=end,
        ),
        Tool(
            name="get_blocked_reason",
            title="[Protocol] What blocks",
            description="Why am I blocked: what the session still needs, in order, and how to get it.",
            params=NoParams,
            handler=blocked,
            repetition=Repetition.IDEMPOTENT,
            toolset="protocol",
            read_only=True,
        ),
    ]
    return Offer(tools=tools, order=60, applies=protocols.applies_to, resources=resources(protocols))
