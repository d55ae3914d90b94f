"""MCP over a relay's socket: lines in, lines out, with the SDK's own serving loop between them."""

from __future__ import annotations

import asyncio
import logging

import anyio
from mcp.server.runner import serve_dual_era_loop
from mcp.shared._context_streams import ContextReceiveStream, ContextSendStream, create_context_streams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from holdfast.relay.lines import LineSplitter, Message, Unreadable, read_line
from holdfast.wire.links import Link
from holdfast.wire.server import Wire

READ_SIZE = 64 * 1024
BUFFERED = 64

logger = logging.getLogger(__name__)


async def serve_relay(wire: Wire, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one relay until it hangs up."""
    to_server, from_client = create_context_streams[SessionMessage | Exception](BUFFERED)
    to_client, from_server = create_context_streams[SessionMessage](BUFFERED)
    async with anyio.create_task_group() as group:
        group.start_soon(_read_lines, reader, writer, to_server)
        group.start_soon(_write_lines, writer, from_server)
        await serve_dual_era_loop(wire.server, from_client, to_client, lifespan_state=link)
        group.cancel_scope.cancel()


async def _read_lines(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    to_server: ContextSendStream[SessionMessage | Exception],
) -> None:
    splitter = LineSplitter()
    async with to_server:
        while True:
            try:
                data = await reader.read(READ_SIZE)
            except ConnectionError:
                return
            if not data:
                return
            for line in splitter.feed(data):
                read = read_line(line)
                if isinstance(read, Message):
                    try:
                        message = jsonrpc_message_adapter.validate_python(read.body, by_name=False)
                    except ValidationError:
                        logger.warning("a relay sent a line that is no JSON-RPC message; dropped")
                        continue
                    await to_server.send(SessionMessage(message))
                elif isinstance(read, Unreadable):
                    for reply in read.replies:
                        writer.write(reply if reply.endswith(b"\n") else reply + b"\n")


async def _write_lines(writer: asyncio.StreamWriter, from_server: ContextReceiveStream[SessionMessage]) -> None:
    async with from_server:
        async for item in from_server:
            writer.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            try:
                await writer.drain()
            except ConnectionError:
                return
