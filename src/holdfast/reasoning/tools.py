"""Reasoning on the wire: the tools `thought`, `init` and `session`, the resources and the prompt."""

from __future__ import annotations

from typing import Any, TypeVar

from holdfast.errors import BadInput
from holdfast.reasoning import views
from holdfast.reasoning.export import Format, export_size, export_view
from holdfast.reasoning.model import Draft
from holdfast.reasoning.params import InitParams, SessionParams, ThoughtParams
from holdfast.reasoning.resources import continue_prompt, session_resource, thought_resource
from holdfast.reasoning.service import Reasoning
from holdfast.wire.mcp.tools import Call, Offer, Repetition, Tool

T = TypeVar("T")


def offer(reasoning: Reasoning) -> Offer:
    return Offer(
        order=20,
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
        return await call.reply(reasoning.think(call.caller, draft, params.sessionId, call.key), views.recorded_view)

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
                return views.state_view(await reasoning.get_state(caller))
            case "list_roots":
                return views.roots_view(caller, await reasoning.bound_root(caller))
            case "bind_root":
                return await call.reply(reasoning.bind_root(caller, call.key), views.bound_view)
            case "start_new":
                started = reasoning.start_new(caller, params.title, params.tags or (), params.domain, call.key)
                return await call.reply(started, views.started_view)
            case "load_context":
                loaded = await reasoning.load_context(caller, params.sessionId, params.limit, params.cursor)
                return views.context_view(loaded)
            case "list_sessions":
                page = await reasoning.browser.list(
                    caller.root, params.status, params.tags or (), params.limit, params.cursor
                )
                return views.sessions_view(page)

    return Tool(
        name="init",
        title="[Reasoning] Load or start a session",
        description=(
            "Bring back what was thought before in this project, no id needed, or begin another session. To record use"
            " thought; to search or edit sessions use session."
        ),
        params=InitParams,
        handler=handle,
        repetition=dict.fromkeys(("bind_root", "start_new"), Repetition.STORED)
        | dict.fromkeys(("get_state", "list_roots", "load_context", "list_sessions"), Repetition.IDEMPOTENT),
        hint="what was thought before",
        root_argument="mcpRootUri",
        meets_strangers=True,
        rebinds=True,
    )


def _session(reasoning: Reasoning) -> Tool:
    async def handle(call: Call, params: SessionParams) -> dict[str, Any]:
        browser, caller, chosen, key = reasoning.browser, call.caller, params.sessionId, call.key
        match params.operation:
            case "list":
                tags = params.tags or ()
                listed = await browser.list(caller.root, params.status, tags, params.limit, params.cursor)
                return views.sessions_view(listed)
            case "get" if params.from_ is None and params.to is None and "." not in (params.cursor or ""):
                return views.outline_page_view(await browser.outline(caller, chosen, params.limit, params.cursor))
            case "get":
                passage = await browser.passage(
                    caller,
                    chosen,
                    params.from_,
                    params.to,
                    params.limit,
                    params.cursor,
                    measure=views.passage_size,
                )
                return views.passage_view(passage)
            case "search":
                hits = await browser.search(
                    caller.root,
                    _given("query", params.query),
                    everywhere=params.scope == "all",
                    status=params.status,
                    limit=params.limit,
                    cursor=params.cursor,
                )
                return views.search_view(hits)
            case "export":
                form = Format(params.format or "markdown")
                page = await browser.export(caller, chosen, params.limit, params.cursor, measure=export_size(form))
                return export_view(page, form)
            case "rename":
                changed = browser.rename(caller, chosen, _given("title", params.title), key)
            case "tag":
                changed = browser.tag(caller, chosen, _given("tags", params.tags), key)
            case "pin":
                changed = browser.pin(caller, chosen, key)
            case "unpin":
                changed = browser.unpin(caller, chosen, key)
            case "archive":
                changed = browser.archive(caller, chosen, key)
            case "restore":
                changed = browser.restore(_given("sessionId", chosen), key)
            case "link" if params.mcpRootUri is not None and caller.root is not None:
                if params.linkTo is not None:
                    raise BadInput("linkTo", "is given beside mcpRootUri", recovery="Link to one of them at a time.")
                root = caller.root
                linked = browser.link_root(caller, chosen, root, key)
                return await call.reply(linked, lambda session: views.changed_view(session, linkedRoot=root.uri))
            case "link":
                other = _given("linkTo", params.linkTo)
                linked = browser.link(caller, chosen, other, key)
                return await call.reply(linked, lambda session: views.changed_view(session, linkedTo=other))
            case "delete":
                return await call.reply(browser.delete(chosen, params.confirm, key), views.deleted_view)
            case "analyze":
                return views.analysis_view(await browser.steps(caller, chosen))
        return await call.reply(changed, views.changed_view)

    return Tool(
        name="session",
        title="[Reasoning] Search and arrange sessions",
        description=(
            "Search the thoughts of an earlier session in full text, read, export or arrange them. To record use"
            " thought; to start or come back use init."
        ),
        params=SessionParams,
        handler=handle,
        repetition=dict.fromkeys(("list", "get", "search", "export", "analyze"), Repetition.IDEMPOTENT)
        | dict.fromkeys(("rename", "tag", "pin", "unpin", "archive", "restore", "link", "delete"), Repetition.STORED),
        destructive=True,
        root_argument="mcpRootUri",
    )


def _given(field: str, value: T | None) -> T:
    if value is None:
        raise BadInput(field, "is required by this operation")
    return value
