"""The daemon's unix socket: for its own user only; the first line of a connection says what it is for."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import struct
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from holdfast.relay.lines import MAX_LINE
from holdfast.text import bounded_json

BUFFER_BYTES = 64 * 1024
FIRST_LINE_SECONDS = 10.0
BACKLOG = 512
MACOS_LOCAL_PEERCRED = 1

SocketHandler = Callable[[dict[str, Any], asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

logger = logging.getLogger(__name__)


class DaemonSocket:
    """Accepts relays, hooks and commands of this user, each served by the handler that its first line names."""

    def __init__(self, path: Path, handlers: Mapping[str, SocketHandler]) -> None:
        self.path = path
        self._handlers = handlers
        self._server: asyncio.Server | None = None
        self._identity: tuple[int, int] | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen; a socket file that a dead daemon left is replaced."""
        self.path.unlink(missing_ok=True)
        await self._listen()

    @property
    def is_missing(self) -> bool:
        """Whether the socket file was removed or replaced while this listens."""
        return self._server is not None and _identity(self.path) != self._identity

    async def put_back(self) -> None:
        """Listen again at the same path; open connections stay."""
        if self._server is not None:
            self._server.close()
        await self.open()

    async def _listen(self) -> None:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        mask = os.umask(0o177)
        try:
            listener.bind(str(self.path))
        finally:
            os.umask(mask)
        self._server = await asyncio.start_unix_server(
            self._accepted, sock=listener, limit=BUFFER_BYTES, backlog=BACKLOG
        )
        self._identity = _identity(self.path)

    def stop_listening(self) -> None:
        """Accept no more connections; open ones stay."""
        if self._server is not None:
            self._server.close()
            self._server = None
            try:
                self.path.unlink(missing_ok=True)
            except OSError as error:  # the disk became read-only; the rest of the end must not wait for it
                logger.warning("the socket could not be removed: %s", error)

    async def close(self) -> None:
        """Stop listening and close every connection."""
        self.stop_listening()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - asyncio runs connection callbacks in tasks
        self._open.add(task)
        try:
            await self._serve(reader, writer)
        except asyncio.CancelledError:
            logger.debug("a connection was closed because the daemon stops")
        except (ConnectionError, asyncio.IncompleteReadError):
            logger.debug("a client hung up")
        except Exception:
            logger.exception("serving a client failed")
        finally:
            self._open.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if peer_uid(writer.get_extra_info("socket")) != os.geteuid():
            logger.warning("refused a process of another user")
            return
        try:
            line = await asyncio.wait_for(_first_line(reader), FIRST_LINE_SECONDS)
            first = bounded_json.loads(line)
            handler = self._handlers[first["holdfast"]]
        except (ValueError, KeyError, TypeError, TimeoutError):
            logger.warning("refused a connection whose first line names no handler")
            return
        await handler(first, reader, writer)


async def _first_line(reader: asyncio.StreamReader) -> bytes:
    """Return the first line of a connection. A command's can be long: a question may have 1 MiB."""
    line = b""
    while len(line) <= MAX_LINE:
        try:
            return line + await reader.readuntil()
        except asyncio.LimitOverrunError as error:
            line += await reader.readexactly(error.consumed)
        except asyncio.IncompleteReadError as error:
            return line + error.partial
    raise ValueError("the first line is too long")


async def say(writer: asyncio.StreamWriter, line: dict[str, Any]) -> None:
    """Write one line of JSON."""
    writer.write(json.dumps(line).encode() + b"\n")
    await writer.drain()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def peer_pid(connection: socket.socket) -> int | None:
    """Return the process at the other end of a unix socket, if the system reveals it."""
    if sys.platform == "darwin":
        return None
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[0])


def peer_uid(connection: socket.socket) -> int:
    """Return the user at the other end of a unix socket."""
    if sys.platform == "darwin":
        # struct xucred: version, uid, ngroups, groups[16]
        credentials = connection.getsockopt(0, MACOS_LOCAL_PEERCRED, struct.calcsize("2Ih16I"))
        return int(struct.unpack_from("2I", credentials)[1])
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])
