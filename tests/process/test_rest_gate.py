"""Every route of a real daemon: none without a key, none for a foreign page, and all as the document says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from starlette.routing import Route
from tests.installation import Installation
from tests.process.agent import Agent
from tests.shared_daemon import Guest

from holdfast.connections.routes import routes
from holdfast.wire.http.gate import behind_the_gate
from holdfast.wire.mcp.catalog import Catalog
from holdfast.wire.mcp.server import Wire
from holdfast.wire.mcp.transports import OpenTransports

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@pytest.fixture
def http(shared_embedded: Guest) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=shared_embedded.address(), timeout=60) as client:
        yield client


async def _ignore(identity: str) -> None:
    return None


async def _route_table() -> list[str]:
    """Every path the application has, whether or not the document tells of it."""
    nothing = cast("Any", None)
    app = behind_the_gate(Wire(Catalog([]), nothing, OpenTransports()), _ignore, routes(nothing))
    return [cast("Route", route).path for route in app.routes]


def _document(http: httpx2.Client, key: str) -> dict[str, Any]:
    response = http.get("/api/openapi.json", headers={"Authorization": f"Bearer {key}"})
    assert response.status_code == 200
    return cast("dict[str, Any]", response.json())


async def _walk(http: httpx2.Client, key: str) -> list[tuple[str, str]]:
    """Every method on every path, by the document and by the route table."""
    paths = sorted({*_document(http, key)["paths"], *await _route_table()})
    assert "/mcp" in paths and "/api/audit" in paths
    return [(method, path.replace("{session_id}", "some-session")) for path in paths for method in METHODS]


@pytest.mark.anyio
async def test_only_healthz_and_readyz_answer_without_a_key(http: httpx2.Client, shared_embedded: Guest) -> None:
    key = shared_embedded.key()
    wrong: tuple[dict[str, str], ...] = ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {key}"})
    for method, path in await _walk(http, key):
        for header in wrong:
            response = http.request(method, path, headers=header)
            if path in ("/healthz", "/readyz"):
                assert response.status_code in (200, 204, 405)
                continue
            assert response.status_code == 401, (method, path)
            assert response.headers["www-authenticate"] == "Bearer"
            assert method == "HEAD" or "holdfast key" in response.json()["detail"]


@pytest.mark.anyio
async def test_a_foreign_host_or_origin_is_refused_on_every_route(http: httpx2.Client, shared_embedded: Guest) -> None:
    key = {"Authorization": f"Bearer {shared_embedded.key()}"}
    for method, path in await _walk(http, shared_embedded.key()):
        foreign_host = http.request(method, path, headers={**key, "Host": "evil.example"})
        foreign_origin = http.request(method, path, headers={**key, "Origin": "https://evil.example"})
        assert (foreign_host.status_code, foreign_origin.status_code) == (421, 403), (method, path)
        assert method == "HEAD" or list(foreign_host.json()) == list(foreign_origin.json()) == ["detail"]


def test_a_key_that_may_only_read_gets_no_token_and_ends_nothing(
    http: httpx2.Client, shared_embedded: Guest, project: Path
) -> None:
    with Agent(shared_embedded, project) as agent:
        agent.think("one")
    made = shared_embedded.run("key", "create", shared_embedded.caller("reader"))
    reader = {"Authorization": f"Bearer {made.stdout.strip()}"}

    def active() -> dict[str, Any]:
        shown = http.get("/api/mcp/sessions/active", headers=reader).json()["sessions"]
        (mine,) = [each for each in shown if each.get("root") == project.as_uri()]
        return cast("dict[str, Any]", mine)

    session = active()
    for path, operations in _document(http, reader["Authorization"].removeprefix("Bearer "))["paths"].items():
        for method, operation in operations.items():
            needs_admin = "scope admin" in operation.get("description", "")
            place = path.replace("{session_id}", session["session_id"])
            response = http.request(method, place, headers=reader, json={"token": "x"} if method == "post" else None)
            lacks = any(one.get("required") and one["in"] == "query" for one in operation.get("parameters", ()))
            let_in = 422 if lacks else 200
            assert response.status_code == (403 if needs_admin else let_in), (method, path)
    assert http.post("/mcp", headers=reader, json={}).status_code == 403
    assert active()["reconnect_count"] == 0


SCHEMATHESIS = """\
[[operations]]
include-path = "/api/mcp/sessions/{session_id}/token"
# A session that ended is refused with 400, as it was first specified; whether it ended, no schema can tell.
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "429"]
"""


@pytest.mark.parametrize("examples", [pytest.param(8, id="few"), pytest.param(40, id="many", marks=pytest.mark.long)])
def test_every_route_does_what_its_document_says(
    embedded: Installation, project: Path, tmp_path: Path, examples: int
) -> None:
    embedded.serve()
    for name in ("one", "two", "three"):
        with Agent(embedded, project, session=name) as agent:
            agent.think(name)
    with httpx2.Client(base_url=embedded.address(), timeout=60) as http:
        document = _document(http, embedded.key())
    # From a file: read from its address, the document's own route would be left out of the run.
    described = tmp_path / "openapi.json"
    described.write_text(json.dumps(document))
    config = tmp_path / "schemathesis.toml"
    config.write_text(SCHEMATHESIS)
    run = subprocess.run(
        [
            str(Path(sys.executable).with_name("schemathesis")),
            *("--config-file", str(config)),
            *("run", str(described), "--url", embedded.address()),
            *("--header", f"Authorization: Bearer {embedded.key()}"),
            *("--checks", "all", "--max-examples", str(examples), "--generation-deterministic", "--no-color"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    operations = sum(len(methods) for methods in document["paths"].values())
    assert f"{operations} selected / {operations} total" in run.stdout, run.stdout
