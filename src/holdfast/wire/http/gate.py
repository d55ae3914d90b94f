"""The HTTP gate: checks Host and Origin of every request, and the key for all but the open routes and the pages."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.connections.keys import Keys
from holdfast.connections.keys import Scope as KeyScope
from holdfast.errors import StoreUnreachable
from holdfast.store.outage import Outage
from holdfast.times import iso
from holdfast.version import __version__
from holdfast.wire.http.openapi import PATH as OPENAPI
from holdfast.wire.http.openapi import with_document
from holdfast.wire.http.origins import Origins, host_of
from holdfast.wire.http.pages import Pages
from holdfast.wire.http.rest import (
    BUSY_SECONDS,
    Answer,
    Problem,
    Reply,
    ResponseModel,
    RestRequest,
    RestRoute,
    away,
    refusal,
    starlette_routes,
)
from holdfast.wire.http.webhooks import Webhook
from holdfast.wire.mcp.server import Wire

KEY = "holdfast.key"
"""The entry of a request's scope with the accepted key."""
MAX_BODY = 8 * 1024 * 1024
OPEN_ROUTES = frozenset({"/healthz", "/readyz"})
"""Served without a key, as webhooks are."""
ADMIN_ROUTES = frozenset({"/mcp"})
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


Detached = Callable[[str], Awaitable[None]]
FindOutage = Callable[[], Awaitable[Outage | None]]
"""Asks the store; None if it answers."""


class Health(ResponseModel):
    """Answer of /healthz and /readyz."""

    status: str
    version: str


def http_app(
    wire: Wire,
    keys: Keys,
    hosts: frozenset[str],
    detached: Detached,
    rest: Sequence[RestRoute],
    webhooks: Sequence[Webhook] = (),
    outage: FindOutage | None = None,
    pages: Sequence[Pages] = (),
    origins: frozenset[str] = frozenset(),
) -> ASGIApp:
    """Build the whole HTTP application; `detached` gets the identity of a client whose stream ended."""
    open_routes = OPEN_ROUTES.union(webhook.path for webhook in webhooks)
    behind = behind_the_gate(wire, detached, rest, webhooks, outage)
    return _CheckHost(_CheckKey(behind, keys, open_routes, pages), hosts, origins)


def behind_the_gate(
    wire: Wire,
    detached: Detached,
    rest: Sequence[RestRoute],
    webhooks: Sequence[Webhook] = (),
    outage: FindOutage | None = None,
) -> Starlette:
    """Build all routes, as they answer once a request has passed the gate."""
    manager = StreamableHTTPSessionManager(wire.server, json_response=True, max_request_body_size=MAX_BODY)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    streams = _WatchStreams(StreamableHTTPASGIApp(manager), wire, detached)
    app = Starlette(
        routes=[
            *starlette_routes(rest_table(rest, outage)),
            Route("/mcp", streams),
            *(webhook.route() for webhook in webhooks),
        ],
        lifespan=lifespan,
        exception_handlers={HTTPException: _not_served, Exception: _failed},
    )
    app.router.redirect_slashes = False
    return app


def rest_table(rest: Sequence[RestRoute], outage: FindOutage | None = None) -> list[RestRoute]:
    """Return the REST routes of the capabilities, plus /healthz and /readyz."""

    async def alive(request: RestRequest) -> Reply:
        return Reply(Health(status="ok", version=__version__))

    async def ready_or_503(request: RestRequest) -> Reply:
        problem = await outage() if outage is not None else None
        if problem is not None:
            # Anyone may ask, so the database's address and error are shown only by `holdfast status`.
            detail = f"The store has not answered since {iso(problem.since)}; `holdfast status` says why."
            raise HTTPException(503, detail, {"Retry-After": str(BUSY_SECONDS)})
        return Reply(Health(status="ready", version=__version__))

    healthz = RestRoute(
        "GET", "/healthz", "healthz", "Whether the daemon serves", alive, {200: Answer("It does.", Health)}, scope=None
    )
    ready = {200: Answer("It can.", Health), 503: Answer("Its store does not answer.", Problem)}
    readyz = RestRoute("GET", "/readyz", "readyz", "Whether the daemon can work", ready_or_503, ready, scope=None)
    return with_document([*rest, healthz, readyz])


async def _not_served(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    detail = f"There is nothing at this path; {OPENAPI} lists what there is." if error.status_code == 404 else None
    return refusal(error.status_code, detail or error.detail, error.headers)


async def _failed(request: Request, error: Exception) -> Response:
    """Answer 500 without details; the server logs the error itself."""
    return refusal(500, "Internal error")


class _CheckHost:
    """Refuses requests that a web page of another site could have made."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str], origins: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts
        self._origins = Origins(app, origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if host_of(f"//{headers.get('host', '')}") not in self._hosts:
                return await refusal(421, "This host name is not served here.")(scope, receive, send)
            if self._origins.allows(scope):
                return await self._origins(scope, receive, send)
            origin = headers.get("origin")
            if origin is not None and host_of(origin) not in self._hosts:
                return await refusal(403, "This origin may not call Holdfast.")(scope, receive, send)
        return await self._app(scope, receive, send)


class _CheckKey:
    """Refuses requests without the key that `holdfast key` prints; pages have a sign-in of their own."""

    def __init__(self, app: ASGIApp, keys: Keys, open_routes: frozenset[str], pages: Sequence[Pages]) -> None:
        self._app = app
        self._keys = keys
        self._open = open_routes
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            for pages in self._pages:
                if pages.owns(scope["path"]):
                    return await pages.app(scope, receive, send)
        if scope["type"] == "http" and scope["path"] not in self._open:
            kind, _, presented = Headers(scope=scope).get("authorization", "").partition(" ")
            try:
                key = await self._keys.check(presented) if kind.lower() == "bearer" else None
            except StoreUnreachable:
                return await away()(scope, receive, send)
            if key is None:
                response = refusal(401, "A key is needed: send the header 'Authorization: Bearer <holdfast key>'.")
                response.headers["www-authenticate"] = "Bearer"
                return await response(scope, receive, send)
            if key.scope is not KeyScope.ADMIN and scope["path"] in ADMIN_ROUTES:
                return await refusal(403, "This key may only read; MCP needs one with scope admin.")(
                    scope, receive, send
                )
            scope[KEY] = key
        return await self._app(scope, receive, send)


class _WatchStreams:
    """Tracks which HTTP clients hold a stream open: those are live."""

    def __init__(self, app: ASGIApp, wire: Wire, detached: Detached) -> None:
        self._app = app
        self._wire = wire
        self._detached = detached

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = Headers(scope=scope).get("mcp-session-id")
        if session is None or scope["method"] not in ("GET", "DELETE"):
            return await self._app(scope, receive, send)
        transports = self._wire.transports
        transport = transports.http(session)

        async def watch(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.start" and message["status"] == 200 and scope["method"] == "GET":
                transport.reachable.set()

        try:
            await self._app(scope, receive, watch)
        finally:
            transport.reachable.clear()
            if scope["method"] == "DELETE":
                transports.forget_http(session)
            if transport.identity is not None:
                await self._detached(transport.identity)
        return None


def allowed_hosts(host: str, extra: str) -> frozenset[str]:
    """Return the host names under which the port may be addressed."""
    names = {name.strip().lower() for name in extra.split(",") if name.strip()}
    return LOOPBACK_HOSTS | {host.lower()} | names
