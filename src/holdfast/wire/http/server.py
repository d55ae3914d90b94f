"""The HTTP port of the daemon."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import uvicorn

from holdfast.config import Settings
from holdfast.connections.keys import Keys
from holdfast.errors import HoldfastError
from holdfast.wire.http.connection import HttpConnection
from holdfast.wire.http.gate import FindOutage, allowed_hosts, http_app
from holdfast.wire.http.origins import allowed_origins
from holdfast.wire.http.pages import Pages
from holdfast.wire.http.rest import RestRoute
from holdfast.wire.http.webhooks import Webhook
from holdfast.wire.mcp.server import Wire

STOP_SECONDS = 1
"""How long a stop waits for open streams; calls have already finished by then."""


class PortTaken(HoldfastError):
    """Another program listens where HTTP should."""

    code = "E_PORT_TAKEN"


class _Server(uvicorn.Server):
    """uvicorn server that leaves signals to the daemon."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Web:
    """The HTTP port, or the reason why it is not served."""

    def __init__(
        self,
        settings: Settings,
        wire: Wire,
        keys: Keys,
        rest: Sequence[RestRoute],
        detached: Callable[[str], Awaitable[None]],
        webhooks: Sequence[Webhook] = (),
        outage: FindOutage | None = None,
        pages: Sequence[Pages] = (),
    ) -> None:
        self._settings = settings
        hosts = allowed_hosts(settings.host, settings.allowed_hosts)
        origins = allowed_origins(settings.origins)
        self._app = http_app(wire, keys, hosts, detached, rest, webhooks, outage, pages, origins)
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self.address: str | None = None
        self.off: str | None = None

    async def start(self, *, required: bool) -> None:
        """Listen; a port in use is an error if HTTP is required, otherwise it is only noted."""
        try:
            listener = self._listen()
        except HoldfastError as error:
            if required:
                raise
            self.off = str(error)
            return
        host, port = listener.getsockname()[:2]
        self.address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        config = uvicorn.Config(
            self._app,
            http=HttpConnection,
            ws="none",  # an upgrade would bypass the checks of Host, Origin and key
            loop="none",
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="on",
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        self._server = _Server(config)
        self._serving = asyncio.get_running_loop().create_task(self._server.serve([listener]))
        while not self._server.started:
            if self._serving.done():
                await self._serving
                raise HoldfastError("The HTTP server ended while it started.")
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        """Close the port and finish what is being answered."""
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await self._serving

    def _listen(self) -> socket.socket:
        settings = self._settings
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        try:
            return socket.create_server((settings.host, settings.port), family=family, backlog=512)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                who = who_listens(settings.port) or "another program"
                raise PortTaken(
                    f"Port {settings.port} on {settings.host} is taken by {who}.",
                    recovery="Choose another one: holdfast serve --port 8182 (or HOLDFAST_PORT).",
                ) from error
            raise HoldfastError(
                f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}.",
                recovery="Choose another address: holdfast serve --host 127.0.0.1 --port 8182.",
            ) from error


def who_listens(port: int) -> str | None:
    """Return the program that listens on a TCP port, if Linux lets us see it."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{fields[9]}]")
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(str(link.readlink()) in inodes for link in (process / "fd").iterdir()):
                command = (process / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
                return f"process {process.name} ({Path(command).name})"
    return None
