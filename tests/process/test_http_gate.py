"""The HTTP port: nobody without a key, no foreign page, and no input that brings it down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.process.agent import MODERN_META
from tests.shared_daemon import Guest

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.fixture
def http(shared_embedded: Guest) -> Iterator[httpx2.Client]:
    headers = {**HEADERS, "Authorization": f"Bearer {shared_embedded.key()}"}
    with httpx2.Client(base_url=shared_embedded.address(), headers=headers, timeout=60) as client:
        yield client


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}


@pytest.mark.parametrize("path", ["/mcp", "/", "/api", "/nothing"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PUT", "OPTIONS"])
def test_no_route_answers_without_the_key(http: httpx2.Client, path: str, method: str) -> None:
    for key in (b"", b"Bearer wrong", "Bearer äöü".encode()):
        response = http.request(method, path, headers={b"Authorization": key}, json=INITIALIZE)
        assert response.status_code == 401
        assert "holdfast key" in response.text


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_needs_no_key_and_tells_no_secret(http: httpx2.Client, shared_embedded: Guest, path: str) -> None:
    response = http.get(path, headers={"Authorization": ""})
    assert response.status_code == 200
    assert str(shared_embedded.home) not in response.text


@pytest.mark.parametrize("path", ["/mcp", "/healthz", "/readyz", "/nothing"])
def test_a_foreign_host_or_origin_is_refused_everywhere(http: httpx2.Client, path: str) -> None:
    assert http.post(path, headers={"Host": "evil.example"}, json=INITIALIZE).status_code == 421
    assert http.post(path, headers={"Host": "127.0.0.1.evil.example:80"}, json=INITIALIZE).status_code == 421
    assert http.post(path, headers={"Origin": "https://evil.example"}, json=INITIALIZE).status_code == 403
    assert http.post(path, headers={"Origin": "null"}, json=INITIALIZE).status_code == 403


def test_a_page_on_this_machine_may_call(http: httpx2.Client) -> None:
    origin = str(http.base_url).rstrip("/")
    assert http.post("/mcp", headers={"Origin": origin}, json=INITIALIZE).status_code == 200
    assert http.post("/mcp", headers={"Host": "localhost"}, json=INITIALIZE).status_code == 200


BAD_BODIES = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff\xfe",
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"thought","arguments":{"thought":"\\ud800"}}}',
    b'{"a":' * 5000 + b"1" + b"}" * 5000,
    b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
    b"x" * 9_000_000,
]


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("body", BAD_BODIES, ids=range(len(BAD_BODIES)))
def test_a_bad_body_gets_a_clear_error_and_the_port_lives_on(http: httpx2.Client, body: bytes, modern: bool) -> None:
    headers = {"Mcp-Protocol-Version": "2026-07-28"} if modern else {}
    response = http.post("/mcp", content=body, headers=headers)
    assert 400 <= response.status_code < 500
    assert "Traceback" not in response.text
    assert http.get("/healthz").status_code == 200


def test_a_modern_request_needs_no_handshake(http: httpx2.Client, project: Path) -> None:
    params = {
        "name": "init",
        "arguments": {"operation": "start_new", "mcpRootUri": project.as_uri()},
        "_meta": MODERN_META,
    }
    headers = {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "init"}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    response = http.post("/mcp", headers=headers, content=json.dumps(message))
    assert response.status_code == 200, response.text
    assert response.json()["result"]["structuredContent"]["session"]["mcpRootUri"] == project.as_uri()
