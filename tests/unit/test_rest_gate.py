"""The HTTP application as a whole: which routes there are, and what is said where there is none."""

from __future__ import annotations

import logging
from typing import Any, cast

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from tests.rest_in_process import with_key

from holdfast.connections.keys import Key, Scope
from holdfast.connections.routes import routes
from holdfast.wire.http.gate import OPEN_ROUTES, behind_the_gate, rest_table
from holdfast.wire.http.rest import Answer, Reply, RestRequest, RestRoute
from holdfast.wire.mcp.catalog import Catalog
from holdfast.wire.mcp.server import Wire
from holdfast.wire.mcp.transports import OpenTransports

pytestmark = pytest.mark.anyio


async def _break(asked: RestRequest) -> Reply:
    raise RuntimeError("a secret of the inside")


BROKEN = RestRoute("GET", "/api/broken", "broken", "A broken route", _break, {200: Answer("It never comes.")})


async def _ignore(identity: str) -> None:
    return None


def _app() -> Starlette:
    nothing = cast("Any", None)
    return behind_the_gate(Wire(Catalog([]), nothing, OpenTransports()), _ignore, [*routes(nothing), BROKEN])


def _client(app: Starlette) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(with_key(app, Key("tester", Scope.ADMIN)), raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url="http://test")


async def test_an_unexpected_error_tells_nothing_of_the_inside(caplog: pytest.LogCaptureFixture) -> None:
    async with _client(_app()) as client:
        with caplog.at_level(logging.CRITICAL):
            response = await client.get("/api/broken")
    assert (response.status_code, response.json()) == (500, {"detail": "Internal error"})


@pytest.mark.parametrize("path", ["/", "/api", "/api/", "/api/mcp/sessions/", "/api/mcp/sessions/a/b", "/healthz/"])
async def test_a_path_that_is_not_served_is_a_404_like_every_other_error(path: str) -> None:
    async with _client(_app()) as client:
        response = await client.get(path)
    assert response.status_code == 404
    assert "/api/openapi.json" in response.json()["detail"]


async def test_only_healthz_and_readyz_are_open() -> None:
    table = rest_table(routes(cast("Any", None)))
    assert {route.path for route in table if route.scope is None} == OPEN_ROUTES == {"/healthz", "/readyz"}


async def test_everything_but_mcp_is_in_the_document() -> None:
    app = _app()
    async with _client(app) as client:
        document = (await client.get("/api/openapi.json")).json()
    served = {route.path for route in app.routes if isinstance(route, Route)}
    assert served == {*document["paths"], "/mcp"}
    assert len(served) == len(app.routes)


async def test_secrets_and_changes_need_an_administrator() -> None:
    table = {(route.method, route.path): route.scope for route in rest_table(routes(cast("Any", None)))}
    one = "/api/mcp/sessions/{session_id}"
    admin = {("GET", f"{one}/token"), ("POST", f"{one}/token"), ("POST", f"{one}/reconnect"), ("DELETE", one)}
    assert {operation for operation, scope in table.items() if scope is Scope.ADMIN} == admin
