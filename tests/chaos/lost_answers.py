"""A proxy between relays and the daemon that loses answers: the call took effect, and the connection is gone.

A kill of the daemon seldom comes between a commit and its answer. Here every cut does, so that each one has the relay
repeat a call which has taken effect already.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import threading
from pathlib import Path


class LosingProxy:
    """Listens in a data directory of its own for relays, and passes their lines to the daemon of another."""

    def __init__(self, folder: Path, daemon: Path) -> None:
        folder.mkdir(mode=0o700)
        self.home = folder
        self._daemon = str(daemon)
        self._chance: random.Random | None = None
        self._share = 0.0
        self.lost = 0
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(folder / "daemon.sock"))
        self._listener.listen(100)
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self, share: float, chance: random.Random) -> None:
        """From now on lose this share of the answers to calls; none with 0."""
        self._chance, self._share = chance, share

    def close(self) -> None:
        """End it."""
        self._closed = True
        self._listener.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                relay, _ = self._listener.accept()
            except OSError:
                return
            daemon = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                daemon.connect(self._daemon)
            except OSError:
                relay.close()
                continue
            calls: set[object] = set()
            for source, sink, answers in ((relay, daemon, False), (daemon, relay, True)):
                threading.Thread(target=self._pass_on, args=(source, sink, calls, answers), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, calls: set[object], answers: bool) -> None:
        with contextlib.suppress(OSError, ValueError), source.makefile("rb") as lines:
            for line in lines:
                if not answers and b'"tools/call"' in line:
                    calls.add(json.loads(line).get("id"))
                elif answers and calls and self._loses(line, calls):
                    break
                sink.sendall(line)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _loses(self, line: bytes, calls: set[object]) -> bool:
        body = json.loads(line)
        if "method" in body or body.get("id") not in calls:
            return False
        calls.discard(body["id"])
        if self._chance is None or self._chance.random() >= self._share:
            return False
        self.lost += 1
        return True
