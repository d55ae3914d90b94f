"""A TCP proxy before PostgreSQL whose connections can be cut, also in the middle of an answer, or go silent."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time


class Proxy:
    """Passes bytes between a TCP port and PostgreSQL's unix socket."""

    def __init__(self, server_socket: str) -> None:
        self._server_socket = server_socket
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._lock = threading.Lock()
        self._silent = threading.Event()
        self._deaf = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._closed = False
        self.commit_seconds = 0.0
        """How long a commit takes, on its way and back, so that a kill is likely to come before its answer."""
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> int:
        """Close every connection; how many there were."""
        with self._lock:
            ends, self._pairs = list(self._pairs), {}
        for end in ends:
            _close(end)
        return len(ends) // 2

    def cut_answers(self) -> None:
        """Let what is sent arrive and no answer come back, until `cut` ends it: commits are left in doubt."""
        self._deaf.set()

    def go_silent(self) -> None:
        """Pass on nothing in either direction, as a network that drops every packet."""
        self._silent.set()

    def heal(self) -> None:
        """Pass everything on again."""
        self._silent.clear()
        self._deaf.clear()

    def close(self) -> None:
        """End it."""
        self._closed = True
        _close(self._listener)
        self.cut()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                server.connect(self._server_socket)
            except OSError:
                if not self._closed:
                    with contextlib.suppress(UnboundLocalError):
                        _close(client)
                continue
            with self._lock:
                self._pairs[client], self._pairs[server] = server, client
            threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with selectors.DefaultSelector() as selector, contextlib.suppress(OSError, ValueError):
            selector.register(client, selectors.EVENT_READ, server)
            selector.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in selector.select(0.05):
                    source, sink = key.fileobj, key.data
                    assert isinstance(source, socket.socket)
                    while self._silent.is_set():
                        if self._silent_ended(client):
                            return
                    data = source.recv(65_536)
                    if not data:
                        raise OSError("the other end closed")
                    if self.commit_seconds and b"COMMIT\0" in data:
                        time.sleep(self.commit_seconds / 2)
                    if not (self._deaf.is_set() and source is server):
                        sink.sendall(data)
                if client.fileno() < 0:
                    return
        _close(client)
        _close(server)

    def _silent_ended(self, client: socket.socket) -> bool:
        threading.Event().wait(0.02)
        return client.fileno() < 0


def _close(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
