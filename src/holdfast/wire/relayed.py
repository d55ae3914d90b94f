"""MCP over a relay's socket: lines in, lines out, with the SDK's own serving loop between them."""

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
from holdfast.wire.exchanges import Exchange
from holdfast.wire.links import Link
from holdfast.wire.server import Wire

READ_SIZE = 64 * 1024

logger = logging.getLogger(__name__)


async def serve_relay(wire: Wire, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one relay until it hangs up."""
    # A relay may have told its agent a list before this daemon was there; where ours differs, it announces that.
    announced = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
    options = wire.server.create_initialization_options(announced)
    with wire.exchanges.open(writer) as exchange:
        streams = _Requests(reader, writer, exchange), Replies(writer, exchange)
        await serve_dual_era_loop(wire.server, *streams, lifespan_state=link, init_options=options)


class _Stream:
    """What the SDK expects of both directions; the socket itself is closed by the door."""

    async def aclose(self) -> None:
        """Nothing to close here."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class _Requests(_Stream):
    """The relay's messages, read straight off the socket: a queue and a task between would cost each call."""

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
        """The next message; a line that is none is answered on the spot."""
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
                logger.warning("a relay sent a line that is no JSON-RPC message; dropped")
            else:
                self._read.append(SessionMessage(message))


class Replies(_Stream):
    """The daemon's messages, written straight to the socket."""

    def __init__(self, writer: asyncio.StreamWriter, exchange: Exchange) -> None:
        self._writer = writer
        self._exchange = exchange

    async def send(self, item: SessionMessage, /) -> None:
        """Write one message; waits while the relay does not read."""
        if self._writer.is_closing():  # the relay is gone; uvloop refuses to write, with an error of its own
            raise anyio.BrokenResourceError
        self._writer.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
        self._exchange.wrote(item.message)
        try:
            await self._writer.drain()
        except ConnectionError as error:
            raise anyio.BrokenResourceError from error
