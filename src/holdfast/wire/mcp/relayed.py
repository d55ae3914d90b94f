"""MCP over a relay's socket: lines in, lines out, with the SDK's own serving loop in between."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from types import TracebackType
from typing import Self

import anyio
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from holdfast.relay.lines import LineSplitter, Message, Unreadable, read_line
from holdfast.wire.mcp.exchanges import Exchange
from holdfast.wire.mcp.server import Wire
from holdfast.wire.mcp.transports import OpenTransport

READ_SIZE = 64 * 1024

logger = logging.getLogger(__name__)


async def serve_relay(
    wire: Wire, transport: OpenTransport, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Serve one relay until it disconnects."""
    # A relay may have answered its agent with a list before this daemon started; it announces a difference.
    announced = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
    options = wire.server.create_initialization_options(announced)
    with wire.exchanges.open(writer) as exchange:
        streams = _Requests(reader, writer, exchange), Replies(writer, exchange)
        await serve_dual_era_loop(wire.server, *streams, lifespan_state=transport, init_options=options)


class _Stream:
    """Base of both directions, as the SDK expects it; the daemon closes the socket itself."""

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class _Requests(_Stream):
    """The relay's messages, read directly from the socket: a queue and a task would slow down each call."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, exchange: Exchange) -> None:
        self._reader = reader
        self._writer = writer
        self._exchange = exchange
        self._lines = LineSplitter()
        self._read: deque[SessionMessage | Exception] = deque()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message; a line that is not a message is answered right away."""
        while not self._read:
            try:
                data = await self._reader.read(READ_SIZE)
            except ConnectionError:
                data = b""
            if not data:
                raise anyio.EndOfStream
            await self._exchange.may_read()
            for line in self._lines.feed(data):
                self._take(read_line(line))
        await self._exchange.may_read()
        taken = self._read.popleft()
        if isinstance(taken, SessionMessage):
            self._exchange.took(taken.message)
        return taken

    def _take(self, read: Message | Unreadable | None) -> None:
        if isinstance(read, Unreadable):
            for reply in read.replies:
                self._writer.write(reply + b"\n")
        elif read is not None:
            try:
                message = jsonrpc_message_adapter.validate_python(read.body, by_name=False)
            except ValidationError:
                logger.warning("a relay sent a line that is not a JSON-RPC message; dropped")
            else:
                self._read.append(SessionMessage(message))


class Replies(_Stream):
    """The daemon's messages, written directly to the socket."""

    def __init__(self, writer: asyncio.StreamWriter, exchange: Exchange) -> None:
        self._writer = writer
        self._exchange = exchange

    async def send(self, item: SessionMessage, /) -> None:
        """Write one message; wait while the relay does not read."""
        if self._writer.is_closing():  # the relay is gone; uvloop would raise an error of its own
            raise anyio.BrokenResourceError
        self._writer.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
        self._exchange.wrote(item.message)
        try:
            await self._writer.drain()
        except ConnectionError as error:
            raise anyio.BrokenResourceError from error
