"""A wire to PostgreSQL that a test cuts or deafens at an exact message: a TCP proxy on loopback."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

Fault = Literal["cut before", "cut after", "deaf before", "deaf after"]
"""What happens to the next COMMIT: its connection is closed, or carries nothing any more; the COMMIT did not reach the
server, or its answer does not reach the client."""


class Proxy:
    """Carries what client and server say, until it is told otherwise."""

    def __init__(self, url: str) -> None:
        parts = conninfo_to_dict(url)
        self._server = str(Path(str(parts["host"])) / f".s.PGSQL.{parts.get('port') or 5432}")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        user = quote(str(parts.get("user") or "postgres"))
        self.url = (
            f"postgresql://{user}:sekret@127.0.0.1:{self.port}/{parts['dbname']}?sslmode=disable&gssencmode=disable"
        )
        self.at_commit: Fault | None = None
        self.of = b""
        """What a transaction says of which the commit is meant."""
        self.then_refuse = False
        """Whether a fault at a commit is the last thing that is carried."""
        self.faults = 0
        self._deaf = False
        self._closed = False
        self._wires: set[_Wire] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def deafen(self) -> None:
        """Take everything and carry nothing, on old and new connections; nobody is told."""
        self._deaf = True
        for wire in list(self._wires):
            wire.deaf = True

    def hear(self) -> None:
        """Carry what new connections say. What was lost on the old ones stays lost."""
        self._deaf = False

    def cut(self) -> None:
        """Close every connection; new ones are closed at once, until `join`."""
        self._closed = True
        for wire in list(self._wires):
            wire.cut()

    def join(self) -> None:
        """Carry new connections again."""
        self._closed = False

    def close(self) -> None:
        """End."""
        self.cut()
        self._listener.close()

    def fault(self, wire: _Wire, fault: Fault) -> None:
        """Do to one connection what was planned for its commit."""
        self.faults += 1
        if self.then_refuse:
            self._closed = True
        if fault.startswith("cut"):
            wire.cut()
        else:
            wire.deaf = True

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            if self._closed:
                client.close()
                continue
            wire = _Wire(self, client, self._server, deaf=self._deaf)
            self._wires.add(wire)


class _Wire:
    """One connection, each direction in a thread of its own."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: str, *, deaf: bool) -> None:
        self.deaf = deaf
        self._proxy = proxy
        self._client = client
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.connect(server)
        self._answer: Fault | None = None
        self._meant = False
        self._commits = {b""}
        for carry in (self._ask, self._reply):
            threading.Thread(target=carry, daemon=True).start()

    def cut(self) -> None:
        for end in (self._client, self._server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _ask(self) -> None:
        with contextlib.suppress(OSError):
            for message in _messages(self._client):
                if self.deaf:
                    continue
                self._meant = self._meant or self._proxy.of in message
                if self._is_commit(message) and self._meant and self._proxy.at_commit is not None:
                    fault, self._proxy.at_commit = self._proxy.at_commit, None
                    if fault.endswith("before"):
                        self._proxy.fault(self, fault)
                        continue
                    self._answer = fault
                if message[:1] == b"Q":  # BEGIN, COMMIT and ROLLBACK have no parameters
                    self._meant = False
                self._server.sendall(message)
        if not self.deaf:
            self.cut()

    def _reply(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._server.recv(65536):
                if self._answer is not None:
                    self._proxy.fault(self, self._answer)
                    self._answer = None
                elif not self.deaf:
                    self._client.sendall(data)
        self.cut()

    def _is_commit(self, message: bytes) -> bool:
        """A COMMIT as text, or the execution of one that was prepared."""
        kind, body = message[:1], message[5:]
        if kind == b"P":
            name, text = body.split(b"\0")[:2]
            if text == b"COMMIT":
                self._commits.add(name)
            return False
        if kind == b"B":
            return body.split(b"\0")[1] in self._commits - {b""}
        return kind == b"Q" and body == b"COMMIT\0"


def _messages(client: socket.socket) -> Iterator[bytes]:
    """What a client says, message by message; the first has no letter before its length."""
    held, letter = b"", 0
    while data := client.recv(65536):
        held += data
        while len(held) >= letter + 4:
            size = letter + int.from_bytes(held[letter : letter + 4], "big")
            if len(held) < size:
                break
            yield held[:size]
            held, letter = held[size:], 1


@contextlib.contextmanager
def proxied(url: str) -> Iterator[Proxy]:
    """A proxy before the server at `url`."""
    proxy = Proxy(url)
    try:
        yield proxy
    finally:
        proxy.close()
