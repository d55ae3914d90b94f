"""A scripted daemon that dies at an exact byte, as often as it is told to, and remembers across its lives.

`FakeServer` is the daemon's mind without a socket: lines in, lines out. `FakeDaemon` puts it on a real socket.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def encode(body: Json) -> bytes:
    """`body` as one line with its newline."""
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


class FakeServer:
    """What the daemon's lives share: which calls took effect, with which result, and what was seen."""

    def __init__(self) -> None:
        self.effects: Counter[str] = Counter()
        self.results: dict[str, Json] = {}
        self.seen: list[Json] = []
        self.hellos: list[Json] = []

    def life(self) -> FakeLife:
        """A new daemon over the same store."""
        return FakeLife(self)

    def methods(self) -> list[str]:
        """The methods of all that was seen, in order."""
        return [body["method"] for body in self.seen if "method" in body]


class FakeLife:
    """One connection to one life of the daemon."""

    def __init__(self, server: FakeServer) -> None:
        self._server = server
        self._handshaken = False
        self._asked = 0

    def answer(self, body: Json) -> list[bytes]:
        """The lines the daemon writes after it read `body`."""
        self._server.seen.append(body)
        method = body.get("method")
        if method is None or "id" not in body:
            return []
        params = body.get("params") or {}
        if method == "initialize":
            self._handshaken = True
            result: Json = {
                "protocolVersion": params.get("protocolVersion"),
                "capabilities": {},
                "serverInfo": {},
            }
            return [self._result(body, result)]
        modern = "io.modelcontextprotocol/protocolVersion" in (params.get("_meta") or {})
        if not self._handshaken and not modern:
            error = {"code": -32602, "message": "no handshake"}
            return [encode({"jsonrpc": "2.0", "id": body["id"], "error": error})]
        if method == "tools/call":
            return self._call(body, params)
        if method == "subscriptions/listen":
            meta = {"io.modelcontextprotocol/subscriptionId": body["id"]}
            acknowledged = {"notifications": params["notifications"], "_meta": meta}
            return [self._notification("notifications/subscriptions/acknowledged", acknowledged)]
        if method == "test/silence":
            return []
        if method == "test/ask":
            return [encode({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})]
        if method == "tools/list":
            return [self._result(body, {"tools": [{"name": "remember", "inputSchema": {"type": "object"}}]})]
        return [self._result(body, {})]

    def _call(self, body: Json, params: Json) -> list[bytes]:
        key = params["_meta"]["holdfast/key"]
        if key not in self._server.results:
            self._server.effects[params["arguments"]["text"]] += 1
            self._server.results[key] = {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
        progress = [
            self._notification("notifications/progress", {"progressToken": body["id"], "progress": step})
            for step in (1, 2)
        ]
        return [*progress, self._result(body, self._server.results[key])]

    @staticmethod
    def _result(body: Json, result: Json) -> bytes:
        return encode({"jsonrpc": "2.0", "id": body["id"], "result": result})

    @staticmethod
    def _notification(method: str, params: Json) -> bytes:
        return encode({"jsonrpc": "2.0", "method": method, "params": params})


class Cut:
    """Where a connection dies: after this many bytes were received from, or sent to, the relay."""

    def __init__(self, *, received: int | None = None, sent: int | None = None) -> None:
        self.received = received
        self.sent = sent


class FakeDaemon:
    """A fake daemon on a real socket, one thread for each connection."""

    def __init__(self, home: Path, *, path: str | None = None, server: FakeServer | None = None) -> None:
        self.server = server or FakeServer()
        self.path = path or str(home / "daemon.sock")
        self.greeting: Callable[[Json], Json | None] = lambda hello: {
            "holdfast": "welcome",
            "version": hello["version"],
            "pid": os.getpid(),
        }
        self.cuts: list[Cut] = []
        self.connections = 0
        self._live: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._stopping = False
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> FakeDaemon:
        self._listener.bind(self.path)
        self._listener.listen(16)
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Die: the socket's file goes, and every connection with it."""
        with self._lock:
            if self._stopping:
                return
            self._stopping = True
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop_connections()
        for thread in list(self._threads):
            thread.join(10)

    def drop_connections(self) -> None:
        """Close every open connection at once, and live on."""
        with self._lock:
            live = list(self._live)
        for connection in live:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def say(self, body: Json) -> None:
        """Write a line of the daemon's own to every open connection."""
        with self._lock:
            live = list(self._live)
        for connection in live:
            connection.sendall(encode(body))

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._stopping:
                    connection.close()
                    return
                self._live.add(connection)
                self.connections += 1
                cut = self.cuts.pop(0) if self.cuts else Cut()
            self._start(self._serve, connection, cut)

    def _serve(self, connection: socket.socket, cut: Cut) -> None:
        try:
            self._converse(connection, cut)
        except OSError:
            return  # the other side or stop() closed it: this life is over
        finally:
            with self._lock:
                self._live.discard(connection)
            connection.close()

    def _converse(self, connection: socket.socket, cut: Cut) -> None:
        life = self.server.life()
        held = b""
        received = sent = 0
        greeted = False
        while True:
            room = 65536 if cut.received is None else min(65536, cut.received - received)
            data = connection.recv(room) if room else b""
            if not data:
                return
            received += len(data)
            *lines, held = (held + data).split(b"\n")
            for line in lines:
                body = json.loads(line)
                if greeted:
                    replies = life.answer(body)
                else:
                    self.server.hellos.append(body)
                    greeting = self.greeting(body)
                    greeted = True
                    replies = [] if greeting is None else [encode(greeting)]
                output = b"".join(replies)
                allowed = output if cut.sent is None else output[: cut.sent - sent]
                connection.sendall(allowed)
                sent += len(allowed)
                if len(allowed) < len(output) or (cut.sent is not None and sent == cut.sent):
                    return
