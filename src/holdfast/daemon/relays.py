"""Connections of relays, which are served or told to start a newer daemon, and of newer daemons that take over."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast.capability import Loop
from holdfast.config import Settings
from holdfast.connections.service import Connections
from holdfast.daemon.loops import Supervisor
from holdfast.daemon.socket import say
from holdfast.errors import BadInput, StoreUnreachable
from holdfast.identity.caller import Hello
from holdfast.version import __version__, is_newer
from holdfast.wire.mcp.transports import OpenTransport, OpenTransports

if TYPE_CHECKING:
    from holdfast.wire.mcp.server import Wire

logger = logging.getLogger(__name__)


class Relays:
    """Serves relays over the daemon's transports."""

    def __init__(
        self,
        settings: Settings,
        transports: OpenTransports,
        connections: Connections,
        supervisor: Supervisor,
        ready: asyncio.Future[Wire],
        stop: Callable[[str], None],
        is_stopping: Callable[[], bool],
    ) -> None:
        self._settings = settings
        self._transports = transports
        self._connections = connections
        self._supervisor = supervisor
        self._ready = ready
        self._stop = stop
        self._is_stopping = is_stopping
        self._newer: str | None = None

    async def serve(self, first: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one relay until it hangs up."""
        try:
            hello = Hello.of(first)
        except BadInput as error:
            return await say(writer, {"holdfast": "refused", "message": str(error)})
        # A managed agent's relay starts no daemon: it would end with the agent.
        if is_newer(hello.version, __version__) and "HOLDFAST_MANAGED" not in hello.env:
            if self._newer != hello.version:
                self._newer = hello.version
                logger.info("a relay of holdfast %s was told to start a daemon of its version", hello.version)
            address = {"host": self._settings.host, "port": self._settings.port}
            return await say(writer, {"holdfast": "step-down", "version": __version__, **address})
        welcome = {"holdfast": "welcome", "version": __version__, "pid": os.getpid(), "ready": self._ready.done()}
        await say(writer, welcome)
        transport = self._transports.open_relay(hello)
        try:
            if transport.identity is not None:
                with contextlib.suppress(StoreUnreachable):  # its first call does it as well, and reports the outage
                    await self._connections.attach(transport.identity, hello.pid)
            wire = await asyncio.shield(self._ready)
            # Only now: two threads that import the SDK at once can deadlock in it.
            from holdfast.wire.mcp.relayed import serve_relay

            await serve_relay(wire, transport, reader, writer)
        finally:
            await self._closed(transport)
        return None

    async def succeed(self, first: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Make room for a newer daemon as soon as no call is under way, provided it still waits then."""
        version = first.get("version")
        if not isinstance(version, str) or not is_newer(version[:64], __version__):
            message = f"holdfast {__version__}, which serves here, is not older than {str(version)[:64]}."
            return await say(writer, {"holdfast": "refused", "message": message})
        await say(writer, {"holdfast": "making-room"})
        wire = await asyncio.shield(self._ready)
        idle, gone = asyncio.ensure_future(wire.idle()), asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({idle, gone}, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                logger.warning("holdfast %s asked for this daemon's place and went away", version[:64])
            else:
                self._stop(f"holdfast {version[:64]} takes over")
                await gone  # hung up on now, it would ask again while the socket is still there
        finally:
            idle.cancel()
            gone.cancel()
        return None

    async def detached(self, identity: str) -> None:
        """Note that a caller's transport is gone, unless another one still speaks for it."""

        async def detach() -> None:
            if identity not in self._transports.attached():
                await self._connections.detach(identity)

        try:
            await detach()
        except StoreUnreachable:
            self._supervisor.start(Loop("detach", detach))  # until the store is back

    def notices(self) -> list[str]:
        """Return the notices about a newer version that did not take over."""
        if self._newer is None:
            return []
        return [
            f"A relay of holdfast {self._newer} asked for a newer daemon, but none took over from this one "
            f"({__version__}), which keeps serving. {self._settings.home / 'daemon.log'} says why it did not start."
        ]

    async def _closed(self, transport: OpenTransport) -> None:
        self._transports.close_relay(transport)
        if transport.identity is not None and not self._is_stopping():
            await self.detached(transport.identity)
