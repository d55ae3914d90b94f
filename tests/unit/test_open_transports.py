"""What is learnt of an open transport, and who is behind it."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.identity.caller import Hello
from holdfast.wire.mcp.transports import HTTP_SESSIONS_LIMIT, OpenTransports

pytestmark = pytest.mark.anyio


def _hello(relay: str, ppid: int, session: str | None = None) -> Hello:
    env = {"CLAUDE_CODE_SESSION_ID": session} if session else {}
    return Hello(relay=relay, version="1", pid=1, ppid=ppid, cwd="/somewhere", env=env)


async def test_a_session_start_hook_rebinds_the_relay_of_that_agent_alone() -> None:
    transports = OpenTransports()
    one, two = transports.open_relay(_hello("r1", 10, "old")), transports.open_relay(_hello("r2", 20, "other"))
    assert transports.rebind(10, "new") == ["agent:old"]
    assert (one.identity, two.identity) == ("agent:new", "agent:other")
    assert transports.rebind(10, "new") == []


async def test_an_identity_is_attached_as_long_as_one_of_its_links_is_open() -> None:
    transports = OpenTransports()
    one, two = transports.open_relay(_hello("r1", 10, "a")), transports.open_relay(_hello("r2", 11, "a"))
    transports.close_relay(one)
    assert transports.attached() == {"agent:a"} and transports.clients == 1
    transports.close_relay(two)
    assert transports.attached() == set() and transports.clients == 0


async def test_requests_without_a_session_never_share_a_link() -> None:
    transports = OpenTransports()
    assert transports.http(None) is not transports.http(None)
    assert transports.http("a") is transports.http("a")


async def test_http_links_are_bounded() -> None:
    transports = OpenTransports()
    first = transports.http("first")
    for number in range(HTTP_SESSIONS_LIMIT):
        transports.http(str(number))
    assert transports.http("first") is not first


async def test_a_relays_directory_is_its_weakest_root() -> None:
    transport = OpenTransports().open_relay(_hello("r", 1))
    root = await transport.root(None, None)
    assert root is not None and root.uri == "file:///somewhere"
    transport.client_roots = ("file:///client",)
    root = await transport.root(None, None)
    assert root is not None and root.uri == "file:///client"


async def test_calls_go_on_in_the_order_in_which_they_came_while_their_root_is_looked_up() -> None:
    transport = OpenTransports().open_relay(_hello("r", 1))
    went_on: list[int] = []

    async def call(number: int) -> None:
        await transport.root(None, None)
        went_on.append(number)

    await asyncio.gather(*(call(number) for number in range(20)))
    assert went_on == list(range(20))
