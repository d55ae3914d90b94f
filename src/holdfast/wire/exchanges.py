"""What relays asked and were not answered yet, so that a daemon that stops leaves no half-truth behind.

A relay repeats what nobody answered, with the same key. So a stop reads no more requests, lets the answers of those
under way go out, and then drops the sockets without a word: an error would tell an agent that a call failed which took
effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCRequest, JSONRPCResponse

from holdfast.relay.session import LISTEN


class Exchange:
    """One relay's socket: the requests that were read from it and not answered yet."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._unanswered: set[tuple[type, str | int]] = set()
        self._reads = True
        self._quiet = asyncio.Event()
        self._quiet.set()

    def took(self, message: JSONRPCMessage) -> None:
        """A message of the relay's is about to be served. A stream is no request that is ever answered."""
        if isinstance(message, JSONRPCRequest) and message.method != LISTEN:
            self._unanswered.add((type(message.id), message.id))
            self._quiet.clear()

    def wrote(self, message: JSONRPCMessage) -> None:
        """A message for the relay was written."""
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._unanswered.discard((type(message.id), message.id))
            if not self._unanswered:
                self._quiet.set()

    async def may_read(self) -> None:
        """Return at once while requests are served; never again when the daemon stops."""
        if not self._reads:
            await asyncio.Event().wait()

    def stop_reading(self) -> None:
        """Serve no request any more that was not read before."""
        self._reads = False

    async def quiet(self) -> None:
        """Wait until everything that was read is answered."""
        await self._quiet.wait()

    def drop(self) -> None:
        """Close the socket without another word."""
        self._writer.transport.abort()


class Exchanges:
    """All relays that are being served."""

    def __init__(self) -> None:
        self._open: set[Exchange] = set()
        self._finished = False

    @contextmanager
    def open(self, writer: asyncio.StreamWriter) -> Iterator[Exchange]:
        """The exchange with one relay, for as long as it is served."""
        exchange = Exchange(writer)
        if self._finished:  # it came a moment too late, and is to ask the next daemon
            exchange.stop_reading()
            exchange.drop()
        self._open.add(exchange)
        try:
            yield exchange
        finally:
            self._open.discard(exchange)

    async def finish(self, seconds: float) -> None:
        """Read no more, answer what was read as far as that is possible in this time, and drop every socket."""
        self._finished = True
        for exchange in self._open:
            exchange.stop_reading()
        under_way = [asyncio.create_task(exchange.quiet()) for exchange in self._open]
        if under_way:
            await asyncio.wait(under_way, timeout=seconds)
        for task in under_way:
            task.cancel()
        for exchange in list(self._open):
            exchange.drop()
