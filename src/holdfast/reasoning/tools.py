"""Reasoning on the wire: the tools `thought`, `init` and `session`, the resources and the prompt."""

from __future__ import annotations

from typing import Any, TypeVar

from holdfast.errors import BadInput
from holdfast.reasoning.export import Format
from holdfast.reasoning.model import Draft
from holdfast.reasoning.params import InitParams, SessionParams, ThoughtParams
from holdfast.reasoning.resources import continue_prompt, session_resource, thought_resource
from holdfast.reasoning.service import Reasoning
from holdfast.wire.tools import Call, Offer, Repetition, Tool

T = TypeVar("T")


def offer(reasoning: Reasoning) -> Offer:
    """All that reasoning puts on the wire."""
    return Offer(
        tools=[_thought(reasoning), _init(reasoning), _session(reasoning)],
        resources=[session_resource(reasoning), thought_resource(reasoning)],
        prompts=[continue_prompt(reasoning)],
    )


def _thought(reasoning: Reasoning) -> Tool:
    async def handle(call: Call, params: ThoughtParams) -> dict[str, Any]:
        draft = Draft(
            content=params.thought,
            next_needed=params.nextThoughtNeeded,
            requested_number=params.thoughtNumber,
            total=params.totalThoughts,
            is_revision=bool(params.isRevision),
            revises=params.revisesThought,
            branch_from=params.branchFromThought,
            branch_id=params.branchId,
            needs_more=bool(params.needsMoreThoughts),
        )
        return await reasoning.think(call.caller, draft, params.sessionId, call.key)

    return Tool(
        name="thought",
        title="[Reasoning] Record a thought",
        description=(
            "Record one step of reasoning; it survives restarts and compaction. Finds this project's session by"
            " itself. To read back use init load_context."
        ),
        params=ThoughtParams,
        handler=handle,
        repetition=Repetition.STORED,
        always_load=True,
    )


def _init(reasoning: Reasoning) -> Tool:
    async def handle(call: Call, params: InitParams) -> dict[str, Any]:
        caller = call.caller
        match params.operation:
            case "get_state":
                return await reasoning.get_state(caller)
            case "list_roots":
                return await reasoning.list_roots(caller)
            case "bind_root":
                return await reasoning.bind_root(caller, call.key)
            case "start_new":
                return await reasoning.start_new(caller, params.title, params.tags or (), params.domain, call.key)
            case "load_context":
                return await reasoning.load_context(caller, params.sessionId, params.limit, params.cursor)
            case "list_sessions":
                return await reasoning.library.list(
                    caller.root, params.status, params.tags or (), params.limit, params.cursor
                )

    return Tool(
        name="init",
        title="[Reasoning] Load or start a session",
        description=(
            "Bring back what was thought before in this project, no id needed, or begin another session. To record use"
            " thought; to search or edit sessions use session."
        ),
        params=InitParams,
        handler=handle,
        repetition={
            "get_state": Repetition.IDEMPOTENT,
            "list_roots": Repetition.IDEMPOTENT,
            "bind_root": Repetition.STORED,
            "start_new": Repetition.STORED,
            "load_context": Repetition.IDEMPOTENT,
            "list_sessions": Repetition.IDEMPOTENT,
        },
        hint="what was thought before",
        root_argument="mcpRootUri",
        meets_strangers=True,
        rebinds=True,
    )


def _session(reasoning: Reasoning) -> Tool:
    library = reasoning.library

    async def handle(call: Call, params: SessionParams) -> dict[str, Any]:
        caller, chosen, key = call.caller, params.sessionId, call.key
        match params.operation:
            case "list":
                return await library.list(caller.root, params.status, params.tags or (), params.limit, params.cursor)
            case "get" if params.from_ is None and params.to is None:
                return await library.outline(caller, chosen, params.limit, params.cursor)
            case "get":
                return await library.passage(caller, chosen, params.from_, params.to)
            case "search":
                return await library.search(
                    caller.root,
                    _given("query", params.query),
                    everywhere=params.scope == "all",
                    status=params.status,
                    limit=params.limit,
                    cursor=params.cursor,
                )
            case "export":
                return await library.export(caller, chosen, Format(params.format or "markdown"), params.cursor)
            case "rename":
                return await library.rename(caller, chosen, _given("title", params.title), key)
            case "tag":
                return await library.tag(caller, chosen, _given("tags", params.tags), key)
            case "pin":
                return await library.pin(caller, chosen, key)
            case "unpin":
                return await library.unpin(caller, chosen, key)
            case "archive":
                return await library.archive(caller, chosen, key)
            case "restore":
                return await library.restore(_given("sessionId", chosen), key)
            case "link":
                return await library.link(caller, chosen, _given("linkTo", params.linkTo), key)
            case "delete":
                return await library.delete(chosen, params.confirm, key)
            case "analyze":
                return await library.analyze(caller, chosen)

    return Tool(
        name="session",
        title="[Reasoning] Search and arrange sessions",
        description=(
            "Search the thoughts of an earlier session in full text, read, export or arrange them. To record use"
            " thought; to start or come back use init."
        ),
        params=SessionParams,
        handler=handle,
        repetition={
            "list": Repetition.IDEMPOTENT,
            "get": Repetition.IDEMPOTENT,
            "search": Repetition.IDEMPOTENT,
            "export": Repetition.IDEMPOTENT,
            "rename": Repetition.STORED,
            "tag": Repetition.STORED,
            "pin": Repetition.STORED,
            "unpin": Repetition.STORED,
            "archive": Repetition.STORED,
            "restore": Repetition.STORED,
            "link": Repetition.STORED,
            "delete": Repetition.STORED,
            "analyze": Repetition.IDEMPOTENT,
        },
        destructive=True,
    )


def _given(field: str, value: T | None) -> T:
    if value is None:
        raise BadInput(field, "is required by this operation")
    return value
