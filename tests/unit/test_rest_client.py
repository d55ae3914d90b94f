"""The client for REST: one method for each route, nothing but the standard library, and clear errors."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from holdfast import client as client_module
from holdfast.bridge.routes import routes as bridge_routes
from holdfast.briefing.routes import routes as briefing_routes
from holdfast.client import Client, RestError
from holdfast.connections.routes import routes
from holdfast.errors import BadInput, NoDaemon
from holdfast.protocol.routes import routes as protocol_routes
from holdfast.teams.routes import routes as team_routes
from holdfast.wire.http.gate import rest_table


def test_the_client_has_one_method_for_each_route() -> None:
    methods = {name for name, _ in inspect.getmembers(Client, inspect.isfunction) if not name.startswith("_")}
    assert methods == {
        route.name
        for route in rest_table(
            [
                *routes(cast("Any", None)),
                *team_routes(cast("Any", None)),
                *protocol_routes(cast("Any", None)),
                *bridge_routes(cast("Any", None), cast("Any", None)),
                *briefing_routes(cast("Any", None)),
            ]
        )
    }


def test_what_is_told_of_sessions_has_the_clients_own_shapes() -> None:
    bodies = {route.answers[200].body for route in routes(cast("Any", None)) if 200 in route.answers}
    assert (
        bodies <= {getattr(client_module, name) for name in client_module.__all__} and client_module.Session in bodies
    )


RAISED_FROM_ELSEWHERE = {"BadInput", "NoDaemon"}
"""Errors of `holdfast.errors` that the client raises, so that whoever uses it can import them from here."""


def test_the_stable_names_of_the_client_are_exactly_its_public_ones() -> None:
    written = ast.parse(Path(str(client_module.__file__)).read_text())
    defined = {
        name
        for node in written.body
        for name in (
            [node.name]
            if isinstance(node, ast.ClassDef | ast.FunctionDef)
            else [target.id for target in node.targets if isinstance(target, ast.Name)]
            if isinstance(node, ast.Assign)
            else []
        )
        if not name.startswith("_")
    }
    assert client_module.__all__ == sorted(defined | RAISED_FROM_ELSEWHERE)
    raised = {
        node.exc.func.id
        for node in ast.walk(written)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name)
    }
    assert raised == {*RAISED_FROM_ELSEWHERE, "RestError"}


def test_the_documentation_names_everything_of_the_client_that_is_stable() -> None:
    told = (Path(__file__).parents[2] / "docs" / "rest.md").read_text().partition("## The Python client\n")[2]
    first_cells = [line.split(" | ")[0] for line in told.splitlines() if line.startswith("| `")]
    assert {*client_module.__all__} == {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)}


def test_the_client_needs_the_standard_library_alone() -> None:
    code = "import sys, holdfast.client; print(sorted(n for n in sys.modules if n.startswith('holdfast')))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(told.replace("'", '"')) == ["holdfast", "holdfast.client", "holdfast.errors", "holdfast.version"]
    outside = "import sys, holdfast.client; print(any(n in sys.modules for n in ('pydantic', 'mcp', 'starlette')))"
    assert subprocess.run([sys.executable, "-c", outside], capture_output=True, text=True).stdout == "False\n"


@contextmanager
def _stranger(status: int, body: bytes, headers: dict[str, str]) -> Iterator[str]:
    """A server that answers every request with the same words."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_a_refusal_tells_status_reason_and_when_to_come_back() -> None:
    with _stranger(429, b'{"detail": "Too many"}', {"Retry-After": "7"}) as address, pytest.raises(RestError) as error:
        Client(address, "key").usage()
    assert (error.value.status, error.value.detail, error.value.retry_after) == (429, "Too many", 7)


@pytest.mark.parametrize("body", [b"<html>", b"[]"])
def test_another_program_on_the_port_is_told_from_holdfast(body: bytes) -> None:
    with _stranger(200, body, {}) as address, pytest.raises(RestError, match="not Holdfast"):
        Client(address, "key").sessions()
    with _stranger(502, body, {}) as address, pytest.raises(RestError, match="HTTP status 502"):
        Client(address, "key").sessions()


def test_fields_of_a_newer_holdfast_are_left_out() -> None:
    with _stranger(200, b'{"status": "ok", "version": "9", "mood": "fine"}', {}) as address:
        assert Client(address, "key").healthz() == client_module.Health("ok", "9")


def test_no_answer_at_all_says_how_to_start_the_daemon() -> None:
    with _stranger(200, b"", {}) as address:
        gone = address
    with pytest.raises(NoDaemon, match="holdfast serve"):
        Client(gone, "key").healthz()


@pytest.mark.parametrize("address", ["127.0.0.1:8181", "ftp://127.0.0.1", "http://", ""])
def test_an_address_must_be_one(address: str) -> None:
    with pytest.raises(BadInput, match="address"):
        Client(address, "key")
