"""The MCP server: one catalog served in both eras, on every transport."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

from holdfast.agents.caller_signals import call_id_in
from holdfast.connections.service import Connections
from holdfast.connections.views import issued_view
from holdfast.errors import BadInput, HoldfastError, NotFound
from holdfast.files.in_time import ProjectTooSlow, in_time
from holdfast.identity.caller import Caller, Era
from holdfast.identity.senders import NotYours
from holdfast.store.calls import AlreadyAnswered, CallKey
from holdfast.store.events import Event, to_json
from holdfast.text.masking import mask_for, mask_for_async
from holdfast.text.quoting import as_data, error_text, in_quotes, quoted_name
from holdfast.version import __version__
from holdfast.wire.mcp import roots
from holdfast.wire.mcp.catalog import INSTRUCTIONS, Catalog
from holdfast.wire.mcp.exchanges import Exchanges
from holdfast.wire.mcp.recognition import (
    CONNECTION,
    Context,
    HandleRefused,
    Recognised,
    Recognition,
    attempt_of,
    era_of,
    handle_sent,
    key_of,
)
from holdfast.wire.mcp.schema import parse
from holdfast.wire.mcp.tools import Call, Repetition, Tool
from holdfast.wire.mcp.transports import OpenTransport, OpenTransports

RELAY_KEY = "holdfast/key"
LISTED_AT_ONCE = 50
"""Resources per page, across families; most clients read only one page."""
FOR_TEAMS = ("bridge", "teams")
"""The toolsets whose tools all respect the teams of a limited key."""


class Wire:
    """The MCP server, its callers, and the calls under way."""

    def __init__(self, catalog: Catalog, connections: Connections, transports: OpenTransports) -> None:
        self.catalog = catalog
        self.transports = transports
        self.exchanges = Exchanges()
        self.in_flight = 0
        self._under_way: dict[CallKey, asyncio.Event] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._used_at = time.monotonic()
        self._connections = connections
        self._recognition = Recognition(connections, transports)
        self._bus = InMemorySubscriptionBus()
        self.server = self._build()

    def _build(self) -> Server[Any]:
        @asynccontextmanager
        async def http_transports(_: Server[Any]) -> AsyncIterator[OpenTransports]:
            yield self.transports

        server: Server[Any] = Server(
            "holdfast",
            version=__version__,
            title="Holdfast",
            instructions=INSTRUCTIONS,
            lifespan=http_transports,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=ListenHandler(self._bus),
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_completion=self._complete,
        )
        server.middleware.clear()
        server.add_notification_handler("notifications/initialized", types.NotificationParams, self._initialized)
        server.add_notification_handler("notifications/roots/list_changed", types.NotificationParams, self._initialized)
        return server

    async def _initialized(self, ctx: Context, params: types.NotificationParams) -> None:
        roots.ask_early(ctx, self._recognition.transport(ctx))

    # -- tools --------------------------------------------------------------------------------------------------------

    async def _list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        transport = self._recognition.transport(ctx)
        toolsets = transport.hello.toolsets if transport.hello else "auto"
        if transport.listed is None:
            anonymous = transport.agent_session is None
            try:
                root = await transport.root(None, None)
                transport.listed = await in_time(partial(self.catalog.listed, toolsets, anonymous=anonymous, root=root))
            except ProjectTooSlow:  # an agent that gets no tools never asks again
                return types.ListToolsResult(tools=self.catalog.listed(toolsets, anonymous=anonymous, root=None))
            except BadInput as error:
                raise MCPError(types.INVALID_PARAMS, error_text(f"{error.code}: {error}")) from error
        return types.ListToolsResult(tools=transport.listed)

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        tool = self.catalog.tools.get(params.name)
        if tool is None:
            names = ", ".join(self.catalog.tools)
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {quoted_name(params.name)}; there are: {names}")
        arguments = params.arguments or {}
        argument = arguments.get(tool.root_argument) if tool.root_argument else None
        began = time.perf_counter()
        met: Recognised | None = None
        with self._counted():
            try:
                parsed = parse(tool.params, arguments)
                recognised = await self._recognition.caller(ctx, argument, params.input_responses, handle=tool.meets)
                if isinstance(recognised, types.InputRequiredResult):
                    return recognised
                if recognised.caller.key_teams is not None and not (tool.for_teams or tool.toolset in FOR_TEAMS):
                    raise NotYours(
                        f"This key is limited to teams, and {tool.name} is not about teams.",
                        recovery="Use a key that is not limited.",
                    )
                met = await self._recognition.meet(ctx, tool, recognised)
                result = await self._run(tool, ctx, met, arguments, parsed)
            except HoldfastError as error:
                text = types.TextContent(type="text", text=mask_for(error_text(f"{error.code}: {error}"), None))
                issued = error.issued if isinstance(error, HandleRefused) else None
                meta = None if issued is None else {CONNECTION: issued_view(issued)}
                result = types.CallToolResult(content=[text], is_error=True, _meta=meta)
        connection = met.connection.id if met is not None and met.connection is not None else None
        outcome = "error" if result.is_error or tool.failed(result.structured_content or {}) else "ok"
        self._connections.usage.count(connection, tool.name, time.perf_counter() - began, outcome)
        return result

    async def _run(
        self, tool: Tool, ctx: Context, met: Recognised, arguments: dict[str, Any], parsed: Any
    ) -> types.CallToolResult:
        transport = self._recognition.transport(ctx)
        repetition = tool.repetition_of(parsed)
        call = Call(
            met.caller,
            attempt_of(ctx, transport),
            progress=partial(_report, ctx),
            key=None if repetition is Repetition.IDEMPOTENT else _key(ctx, met.caller, tool.name, arguments),
        )
        alone = call.key if repetition is Repetition.STORED else None
        await self._wait_for_first(alone)
        try:
            result = await _handled(tool, call, parsed)
            if not tool.hands_out_token:
                result = await mask_for_async(result, met.connection.id if met.connection is not None else None)
        finally:
            if alone is not None:
                self._under_way.pop(alone).set()
            if tool.rebinds:
                transport.forget_caller()
        meta: dict[str, Any] | None = None
        if met.issued is not None:
            meta = {CONNECTION: issued_view(met.issued)}
            # A model sees only the structured content; a client that sends headers reads _meta.
            if not handle_sent(ctx):
                result = {**result, "connection": {**result.get("connection", {}), **issued_view(met.issued)}}
        text = to_json(result)
        # JSON escapes line feeds and the like, but not every character that ends a line; most texts have none of those.
        if "\x7f" in text or not (text.isascii() or text.isprintable()):
            result = as_data(result)
            text = to_json(result)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)], structured_content=result, _meta=meta
        )

    async def _wait_for_first(self, key: CallKey | None) -> None:
        """Make a repetition wait for the first call while that is under way, so that it finds its result.

        Transactions are once-only even without this, but agents and commands would be started twice.
        """
        if key is not None:
            while (first := self._under_way.get(key)) is not None:
                await first.wait()
            self._under_way[key] = asyncio.Event()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self.in_flight += 1
        self._idle.clear()
        try:
            yield
        finally:
            self.in_flight -= 1
            self._used_at = time.monotonic()
            if not self.in_flight:
                self._idle.set()

    async def idle(self) -> None:
        """Wait until no call is under way."""
        await self._idle.wait()

    def recently_used(self, seconds: float) -> bool:
        """Return whether a call ended within the last seconds."""
        return time.monotonic() - self._used_at < seconds

    # -- resources ----------------------------------------------------------------------------------------------------

    async def _known_caller(self, ctx: Context) -> Caller:
        """Return the caller of a request that cannot be answered with a question."""
        _require_unlimited(ctx)
        recognised: Recognised | types.InputRequiredResult = await _plain(
            self._recognition.caller(ctx, ask=era_of(ctx) is Era.LEGACY)
        )
        if isinstance(recognised, types.InputRequiredResult):
            raise RuntimeError("a caller was asked though asking was off")
        return recognised.caller

    async def _list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        caller = await self._known_caller(ctx)
        listing = [resource for resource in self.catalog.resources if resource.list is not None]
        position, _, cursor = (params.cursor if params and params.cursor else "0:").partition(":")
        if not position.isdigit() or int(position) >= max(len(listing), 1):
            raise MCPError(types.INVALID_PARAMS, "cursor: is not one that resources/list gave out")
        at = int(position)
        resources: list[types.Resource] = []
        following: str | None = None
        while at < len(listing):
            family = listing[at]
            assert family.list is not None  # noqa: S101 - chosen above
            page = await _plain(family.list(caller, cursor or None))
            resources += [
                types.Resource(uri=uri, name=mask_for(name, None), description=text, mime_type="text/markdown")
                for uri, name, text in page.items
            ]
            at, cursor = (at, page.next_cursor) if page.next_cursor is not None else (at + 1, "")
            if page.next_cursor is not None or (len(resources) >= LISTED_AT_ONCE and at < len(listing)):
                following = f"{at}:{cursor}"
                break
        return types.ListResourcesResult(resources=resources, next_cursor=following)

    async def _list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=resource.template,
                    name=resource.name,
                    description=resource.description,
                    mime_type="text/markdown",
                )
                for resource in self.catalog.resources
                if "{" in resource.template
            ]
        )

    async def _read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        found = self.catalog.find_resource(uri)
        if found is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no resource {in_quotes(uri, 200)}", {"uri": uri})
        resource, values = found
        text = await mask_for_async(await _plain(resource.read(await self._known_caller(ctx), values)), None)
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type="text/markdown", text=text)]
        )

    async def _subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        _require_unlimited(ctx)
        transport = self._recognition.transport(ctx)
        if len(transport.subscriptions) >= 1000:
            raise MCPError(types.INVALID_PARAMS, "A client may subscribe to 1000 resources; unsubscribe from some.")
        transport.subscriptions[str(params.uri)] = ctx.session
        return types.EmptyResult()

    async def _unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self._recognition.transport(ctx).subscriptions.pop(str(params.uri), None)
        return types.EmptyResult()

    async def announce(self, events: list[Event]) -> None:
        """Tell subscribers, in both eras, which resources these events changed."""
        for event in events:
            if event.kind == "connection.revoked":
                self.transports.forget_connection(event.subject)
        for uri in self.catalog.changed_by(events):
            await self._bus.publish(ResourceUpdated(uri))
            for transport in list(self.transports):
                session = transport.subscriptions.get(uri)
                if session is not None:
                    await session.send_resource_updated(uri)

    # -- prompts and completion ---------------------------------------------------------------------------------------

    async def _list_prompts(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(name=prompt.name, title=prompt.title, description=prompt.description)
                for prompt in self.catalog.prompts.values()
            ]
        )

    async def _get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        prompt = self.catalog.prompts.get(params.name)
        if prompt is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no prompt {quoted_name(params.name)}")
        _require_unlimited(ctx)
        recognised = await _plain(self._recognition.caller(ctx, answers=params.input_responses))
        if isinstance(recognised, types.InputRequiredResult):
            return recognised
        text = await mask_for_async(await _plain(prompt.render(recognised.caller)), None)
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(description=prompt.description, messages=[message])

    async def _complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        values: list[str] = []
        if isinstance(params.ref, types.ResourceTemplateReference):
            for resource in self.catalog.resources:
                if resource.template == str(params.ref.uri) and resource.complete is not None:
                    arguments = (params.context.arguments or {}) if params.context else {}
                    caller = await self._known_caller(ctx)
                    values = list(
                        await _plain(resource.complete(caller, params.argument.name, params.argument.value, arguments))
                    )
        return types.CompleteResult(
            completion=types.Completion(values=values[:100], total=len(values), has_more=len(values) > 100)
        )


def _require_unlimited(ctx: Context) -> None:
    """Refuse a key that is limited to teams: no resource or prompt is about teams."""
    key = key_of(ctx)
    if key is not None and key.teams is not None:
        raise MCPError(types.INVALID_PARAMS, "E_NOT_YOURS: This key is limited to teams; it has tools for them alone.")


async def _handled(tool: Tool, call: Call, parsed: Any) -> dict[str, Any]:
    """Run a tool's handler, and check that it stored its result as the tool's repetition declares."""
    try:
        result = await tool.handler(call, parsed)
    except AlreadyAnswered as known:
        return known.result
    if call.key is not None and not call.key.settled:
        raise RuntimeError(f"{tool.name} is declared {tool.repetition_of(parsed)}, but stored nothing under its key")
    return result


def _key(ctx: Context, caller: Caller, tool: str, arguments: dict[str, Any]) -> CallKey | None:
    """Return the key that identifies repetitions of this call: the model's tool-use id, otherwise the relay's own key.

    A relay's key begins with the relay's random name, so no caller can get another's result.
    """
    meta = (ctx.params or {}).get("_meta") or {}
    tool_use, relayed = call_id_in(meta), meta.get(RELAY_KEY)
    if caller.identity is not None and tool_use is not None:
        return CallKey.of(caller.identity, tool_use[:200], tool, arguments)
    hello = ctx.lifespan_context.hello if isinstance(ctx.lifespan_context, OpenTransport) else None
    if hello is not None and isinstance(relayed, str) and relayed.startswith(f"{hello.relay}:"):
        return CallKey.of("relay", relayed[:200], tool, arguments)
    return None


async def _report(ctx: Context, done: float, message: str) -> None:
    await ctx.session.report_progress(done, message=message)


async def _plain(awaitable: Any) -> Any:
    """Await, converting our errors to MCP errors."""
    try:
        return await awaitable
    except NotFound as error:
        raise MCPError(types.INVALID_PARAMS, error_text(str(error))) from error
    except HoldfastError as error:
        raise MCPError(types.INTERNAL_ERROR, error_text(str(error))) from error
