"""One HTTP connection, with the limits that uvicorn lacks: how long and how much a client without a key may send."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.wire.http.gate import KEY

HEAD_SECONDS = 5.0
"""How long the head of a request may take, from the connection or its first byte."""
BODY_SECONDS = 10.0
"""How long a body may take after its head."""
MAX_HEAD = 64 * 1024
TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
MAX_WITHOUT_KEY = 100
"""How many connections may be open without an accepted key."""


class HttpConnection(HttpToolsProtocol):
    """HTTP connection that, until a key is accepted on it, is closed if it is slow or newer ones need its slot."""

    _has_key = False
    _deadline: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _in_head = True
    """Whether the head of its next request is still incomplete."""
    since = 0.0

    @property
    def has_key(self) -> bool:
        """Whether a request with a valid key came over it."""
        self._has_key = self._has_key or (self.cycle is not None and KEY in self.cycle.scope)
        return self._has_key

    @property
    def is_answered(self) -> bool:
        """Whether a whole request was received and its answer is under way."""
        return self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first request."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._allow(HEAD_SECONDS)
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._allow(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read data; each further request on the connection is timed from its first byte."""
        if self._in_head:
            self._head_bytes += len(data)  # until the head is complete
            if self._deadline is None:
                self._allow(HEAD_SECONDS)
        super().data_received(data)
        if self._in_head and self._head_bytes > MAX_HEAD and not self.transport.is_closing():
            self.transport.write(TOO_LARGE)
            self.transport.close()

    def on_headers_complete(self) -> None:
        """Begin the request, and start the timer for its body."""
        self._has_key = self.has_key  # of the previous request; this one starts without a key
        self._in_head, self._head_bytes = False, 0
        self._allow(BODY_SECONDS)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Pass on the rest of the body; from here on uvicorn handles keep-alive."""
        self._in_head = True
        self._allow(None)
        super().on_message_complete()

    def _allow(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._expired)

    def _expired(self) -> None:
        self._deadline = None
        if not self.has_key:
            self.transport.abort()

    def _make_room(self) -> None:
        """Drop the oldest connection without a key; those whose request is being answered go last."""
        without = [
            one
            for one in self.connections
            if isinstance(one, HttpConnection) and not one.has_key and not one.transport.is_closing()
        ]
        others = sorted((one for one in without if one is not self), key=lambda one: (one.is_answered, one.since))
        for one in others[: max(0, len(without) - MAX_WITHOUT_KEY)]:
            one.transport.abort()
