"""The daemon's end of a relay's socket."""

from __future__ import annotations

import asyncio
import socket

import anyio
import pytest
import uvloop
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

from holdfast.wire.mcp.exchanges import Exchange
from holdfast.wire.mcp.relayed import Replies


def test_an_answer_to_a_relay_that_is_gone_is_dropped_and_no_failure_of_the_daemon() -> None:
    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        theirs.close()
        _, writer = await asyncio.open_unix_connection(sock=ours)
        writer.close()
        await writer.wait_closed()
        with pytest.raises(anyio.BrokenResourceError):
            await Replies(writer, Exchange(writer)).send(
                SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={}))
            )

    uvloop.run(scenario())  # as the daemon does
