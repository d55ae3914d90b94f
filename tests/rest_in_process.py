"""REST routes answered inside the test, to a client whose key was checked already."""

from __future__ import annotations

from collections.abc import Sequence

import httpx2
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.connections.keys import Key
from holdfast.connections.keys import Scope as KeyScope
from holdfast.wire.http.rest import RestRoute, starlette_routes


def client_of(routes: Sequence[RestRoute], scope: KeyScope | None = KeyScope.ADMIN) -> httpx2.AsyncClient:
    """A client that holds a key named tester with this scope; None holds no key at all."""
    app = with_key(Starlette(routes=starlette_routes(routes)), Key("tester", scope) if scope else None)
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://test")


def with_key(app: ASGIApp, key: Key | None) -> ASGIApp:
    """The application behind a gate that lets everybody in with this key."""

    async def let_in(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "holdfast.key": key}, receive, send)

    return let_in
