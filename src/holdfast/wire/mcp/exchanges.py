"""Tracks unanswered requests of relays, so that a stopping daemon misreports none of them.

A relay repeats unanswered requests with the same key. So a stopping daemon reads no more requests, sends the answers of
those under way, and then closes the sockets without an error: an error would tell an agent that a call failed although
it took effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCRequest, JSONRPCResponse

from holdfast.relay.session import LISTEN


class Exchange:
    """One relay's socket, with the requests read from it that are not answered yet."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._unanswered: set[tuple[type, str | int]] = set()
        self.reads = True
        """Whether further requests are read."""
        self.quiet = asyncio.Event()
        """Set while every request that was read is answered."""
        self.quiet.set()

    def took(self, message: JSONRPCMessage) -> None:
        """Note a message that is about to be served. Streams do not count: they are never answered."""
        if isinstance(message, JSONRPCRequest) and message.method != LISTEN:
            self._unanswered.add((type(message.id), message.id))
            self.quiet.clear()

    def wrote(self, message: JSONRPCMessage) -> None:
        """Note a message that was written to the relay."""
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._unanswered.discard((type(message.id), message.id))
            if not self._unanswered:
                self.quiet.set()

    async def may_read(self) -> None:
        """Return at once while requests are served; never once the daemon stops."""
        if not self.reads:
            await asyncio.Event().wait()

    def drop(self) -> None:
        """Close the socket without sending anything."""
        self._writer.transport.abort()


class Exchanges:
    """The exchanges of all connected relays."""

    def __init__(self) -> None:
        self._open: set[Exchange] = set()
        self._finished = False

    @contextmanager
    def open(self, writer: asyncio.StreamWriter) -> Iterator[Exchange]:
        """Register the exchange with one relay while it is served."""
        exchange = Exchange(writer)
        if self._finished:  # too late: it must ask the next daemon
            exchange.reads = False
            exchange.drop()
        self._open.add(exchange)
        try:
            yield exchange
        finally:
            self._open.discard(exchange)

    async def finish(self, seconds: float) -> None:
        """Read no more, answer what was read if possible within this time, and close every socket."""
        self._finished = True
        for exchange in self._open:
            exchange.reads = False
        under_way = [asyncio.create_task(exchange.quiet.wait()) for exchange in self._open]
        if under_way:
            await asyncio.wait(under_way, timeout=seconds)
        for task in under_way:
            task.cancel()
        for exchange in list(self._open):
            exchange.drop()
