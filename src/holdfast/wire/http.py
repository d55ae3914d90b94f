"""HTTP, for MCP and REST: every route but those that tell nothing behind a key, and Host and Origin checked for all."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.connections.keys import Keys
from holdfast.connections.keys import Scope as KeyScope
from holdfast.errors import StoreUnreachable
from holdfast.store.outage import Outage
from holdfast.times import iso
from holdfast.version import __version__
from holdfast.wire.openapi import PATH as OPENAPI
from holdfast.wire.openapi import with_document
from holdfast.wire.rest import (
    BUSY_SECONDS,
    Answer,
    Asked,
    Problem,
    Reply,
    RestRoute,
    Told,
    away,
    refusal,
    starlette_routes,
)
from holdfast.wire.server import Wire

KEY = "holdfast.key"
"""Where a request's scope holds the key that was accepted."""
MAX_BODY = 8 * 1024 * 1024
MAX_WEBHOOK_BODY = 1024 * 1024
"""Less than of others: it is read before anything is known of who sends it."""
WEBHOOK = "/telegram/webhook"
OPEN_ROUTES = frozenset({"/healthz", "/readyz", WEBHOOK})
ADMIN_ROUTES = frozenset({"/mcp"})
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class Gate:
    """Who may talk to the HTTP port."""

    keys: Keys
    hosts: frozenset[str]


Detached = Callable[[str], Awaitable[None]]
Webhook = Callable[[bytes, str], Awaitable[int]]
"""Takes in what a chat's server brings, with the secret it sent; the status to answer with."""
FindOutage = Callable[[], Awaitable[Outage | None]]
"""Asks the store; None when it answers."""


class Health(Told):
    """That the daemon serves, or can work."""

    status: str
    version: str


def http_app(
    wire: Wire,
    gate: Gate,
    detached: Detached,
    rest: Sequence[RestRoute],
    webhook: Webhook | None = None,
    outage: FindOutage | None = None,
) -> ASGIApp:
    """The whole HTTP application; `detached` is told the identity of a client whose stream ended."""
    return _CheckHost(_CheckKey(behind_the_gate(wire, detached, rest, webhook, outage), gate.keys), gate.hosts)


def behind_the_gate(
    wire: Wire,
    detached: Detached,
    rest: Sequence[RestRoute],
    webhook: Webhook | None = None,
    outage: FindOutage | None = None,
) -> Starlette:
    """Every route there is, as it answers whoever was let in."""
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
            *([Route(WEBHOOK, _brought(webhook), methods=["POST"])] if webhook is not None else []),
        ],
        lifespan=lifespan,
        exception_handlers={HTTPException: _not_served, Exception: _failed},
    )
    app.router.redirect_slashes = False
    return app


def rest_table(rest: Sequence[RestRoute], outage: FindOutage | None = None) -> list[RestRoute]:
    """What the capabilities offer over REST, with what every daemon tells of itself."""

    async def tell(asked: Asked) -> Reply:
        return Reply(Health(status="ok", version=__version__))

    async def look(asked: Asked) -> Reply:
        found = await outage() if outage is not None else None
        if found is not None:
            # Anybody may ask, so where the database is and what it said stays in `holdfast status`.
            detail = f"The store has not answered since {iso(found.since)}; `holdfast status` says why."
            raise HTTPException(503, detail, {"Retry-After": str(BUSY_SECONDS)})
        return Reply(Health(status="ready", version=__version__))

    healthz = RestRoute(
        "GET", "/healthz", "healthz", "Whether the daemon serves", tell, {200: Answer("It does.", Health)}, scope=None
    )
    ready = {200: Answer("It can.", Health), 503: Answer("Its store does not answer.", Problem)}
    readyz = RestRoute("GET", "/readyz", "readyz", "Whether the daemon can work", look, ready, scope=None)
    return with_document([*rest, healthz, readyz])


def _brought(webhook: Webhook) -> Callable[[Request], Awaitable[Response]]:
    """What a chat's server brings by itself; it has a secret of its own instead of a key."""

    async def take(request: Request) -> Response:
        body = bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_WEBHOOK_BODY:
                    return refusal(413, "The body is too long.")
        except ClientDisconnect:
            return refusal(400, "The body did not come.")  # to nobody: it is gone, which is no error of ours
        secret = request.headers.get("x-telegram-bot-api-secret-token", "")
        return Response(status_code=await webhook(bytes(body), secret))

    return take


async def _not_served(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    detail = f"There is nothing at this path; {OPENAPI} lists what there is." if error.status_code == 404 else None
    return refusal(error.status_code, detail or error.detail, error.headers)


async def _failed(request: Request, error: Exception) -> Response:
    """The server logs the error itself; the client learns nothing of it."""
    return refusal(500, "Internal error")


class _CheckHost:
    """Refuses requests that a web page on another site could have made."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if _host_name(headers.get("host", "")) not in self._hosts:
                return await refusal(421, "This host name is not served here.")(scope, receive, send)
            origin = headers.get("origin")
            if origin is not None and _origin_name(origin) not in self._hosts:
                return await refusal(403, "This origin may not call Holdfast.")(scope, receive, send)
        return await self._app(scope, receive, send)


class _CheckKey:
    """Refuses requests without the key that `holdfast key` prints."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN_ROUTES:
            kind, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
            try:
                key = await self._keys.check(given) if kind.lower() == "bearer" else None
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
    """Notices which HTTP clients hold a stream open, which is how a live one is told from one that is gone."""

    def __init__(self, app: ASGIApp, wire: Wire, detached: Detached) -> None:
        self._app = app
        self._wire = wire
        self._detached = detached

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = Headers(scope=scope).get("mcp-session-id")
        if session is None or scope["method"] not in ("GET", "DELETE"):
            return await self._app(scope, receive, send)
        links = self._wire.links
        link = links.http(session)

        async def watch(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.start" and message["status"] == 200 and scope["method"] == "GET":
                link.reachable.set()

        try:
            await self._app(scope, receive, watch)
        finally:
            link.reachable.clear()
            if scope["method"] == "DELETE":
                links.forget_http(session)
            if link.identity is not None:
                await self._detached(link.identity)
        return None


def allowed_hosts(host: str, extra: str) -> frozenset[str]:
    """The names under which the port may be addressed."""
    names = {name.strip().lower() for name in extra.split(",") if name.strip()}
    return LOOPBACK_HOSTS | {host.lower()} | names


def _host_name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _origin_name(origin: str) -> str | None:
    try:
        return urlsplit(origin).hostname
    except ValueError:
        return None
