"""Connections without a key are few and short, and take nothing from those who have one."""

from __future__ import annotations

import contextlib
import selectors
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.installation import PATIENCE, wait_until
from tests.shared_daemon import Guest

from holdfast.wire.http.connection import MAX_HEAD, MAX_WITHOUT_KEY

MANY = 300

HALVES = {
    "nothing": b"",
    "half a line": b"GET /heal",
    "half a head": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ",
    "half a body": b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{",
    "half an open body": b"POST /telegram/webhook HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{",
    "half a second request": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /heal",
}


@contextlib.contextmanager
def _flood(guest: Guest, number: int, *sent: bytes) -> Iterator[list[socket.socket]]:
    place = urlsplit(guest.address())
    with contextlib.ExitStack() as opened:
        sockets = []
        for index in range(number):
            one = opened.enter_context(socket.create_connection((place.hostname, place.port), PATIENCE))
            with contextlib.suppress(ConnectionError):  # the oldest are closed while the newest come
                one.sendall(sent[index % len(sent)])
            one.setblocking(False)
            sockets.append(one)
        yield sockets


def _still_open(sockets: list[socket.socket]) -> list[socket.socket]:
    """Those that the daemon has not closed; what it answered on them is read away."""
    found = []
    with selectors.DefaultSelector() as selector:
        for one in sockets:
            selector.register(one, selectors.EVENT_READ)
        readable = {key.fileobj for key, _ in selector.select(0)}
    for one in sockets:
        try:
            while one in readable and one.recv(65536):
                pass
        except BlockingIOError:
            found.append(one)
        except ConnectionError:
            continue
        else:
            if one not in readable:
                found.append(one)
    return found


def _serves(guest: Guest) -> None:
    headers = {"Authorization": f"Bearer {guest.key()}"}
    answer = httpx2.get(f"{guest.address()}/api/audit", headers=headers, timeout=PATIENCE)
    assert answer.status_code == 200


def test_three_hundred_half_open_connections_are_closed_and_a_client_is_served_meanwhile(
    shared_embedded: Guest,
) -> None:
    with _flood(shared_embedded, MANY, *HALVES.values()) as sockets:
        _serves(shared_embedded)
        wait_until(lambda: len(_still_open(sockets)) <= MAX_WITHOUT_KEY, "the oldest make room")
        left = sockets

        def none_left() -> bool:
            nonlocal left
            left = _still_open(left)
            return not left

        wait_until(none_left, "every half-open connection is closed")
        _serves(shared_embedded)


@pytest.mark.parametrize("drip", [b"a", b"\r\n"], ids=["a byte", "empty lines"])
def test_a_connection_that_drips_is_closed(shared_embedded: Guest, drip: bytes) -> None:
    with _flood(shared_embedded, 1, HALVES["half a head"] if drip == b"a" else b"") as (one,):

        def closed() -> bool:
            try:
                one.send(drip)
            except ConnectionError:
                return True
            return not _still_open([one])

        wait_until(closed, "a head that never ends is not waited for")


def test_a_head_without_an_end_is_not_kept(shared_embedded: Guest) -> None:
    with _flood(shared_embedded, 1, b"GET /healthz HTTP/1.1\r\nX-A: ") as (one,):
        one.settimeout(PATIENCE)
        sent = 0
        with pytest.raises(ConnectionError):
            while sent < 1000 * MAX_HEAD:
                sent += one.send(b"a" * MAX_HEAD)
    _serves(shared_embedded)


def test_a_stream_with_a_key_stays_open_through_a_flood(shared_embedded: Guest) -> None:
    headers = {
        "Authorization": f"Bearer {shared_embedded.key()}",
        "Accept": "application/json, text/event-stream",
    }
    initialize = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    with httpx2.Client(base_url=shared_embedded.address(), headers=headers, timeout=PATIENCE) as client:
        session = {"Mcp-Session-Id": client.post("/mcp", json=initialize).headers["mcp-session-id"]}
        with client.stream("GET", "/mcp", headers=session) as stream:
            assert stream.status_code == 200
            raw = stream.extensions["network_stream"].get_extra_info("socket")
            with _flood(shared_embedded, MANY, HALVES["half a head"]) as sockets:
                wait_until(lambda: not _still_open(sockets), "the flood is over")
            raw.setblocking(False)
            assert _still_open([raw]) == [raw]
        assert client.delete("/mcp", headers=session).status_code == 200


def test_an_upgrade_does_not_come_past_the_key(shared_embedded: Guest) -> None:
    head = (
        b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    with _flood(shared_embedded, 1, head) as (one,):
        one.settimeout(PATIENCE)
        assert one.recv(65536).startswith(b"HTTP/1.1 401 ")
