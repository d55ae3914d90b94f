"""A door between a relay and its daemon that loses an answer: the call has taken effect, and nobody was told."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.installation import Installation


class LostAnswers:
    """Listens where the relays of `home` look for a daemon, and passes everything on to another home's daemon."""

    def __init__(self, holdfast: Installation, home: Path) -> None:
        home.mkdir(mode=0o700)
        self._daemon = str(holdfast.home / "daemon.sock")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(home / "daemon.sock"))
        self._listener.listen(16)
        self._then: Callable[[], object] | None = None
        self._open: set[socket.socket] = set()
        self.lost: list[str] = []
        """The tools' answers that were lost, as they were written."""
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_next(self, then: Callable[[], object] = lambda: None) -> None:
        """Lose the answer to the next call of a tool, do this, and drop the relay's connection."""
        self._then = then

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed: the test is over
            while True:
                relay, _ = self._listener.accept()
                daemon = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                try:
                    daemon.connect(self._daemon)
                except OSError:  # not there yet; the relay tries again
                    relay.close()
                    continue
                self._open |= {relay, daemon}
                for source, target in ((relay, daemon), (daemon, relay)):
                    work = self._ask if source is relay else self._answer
                    threading.Thread(target=work, args=(source, target), daemon=True).start()

    def _ask(self, relay: socket.socket, daemon: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := relay.recv(1 << 16):
                daemon.sendall(data)
        self._drop(relay, daemon)

    def _answer(self, daemon: socket.socket, relay: socket.socket) -> None:
        with contextlib.suppress(OSError), daemon.makefile("rb") as lines:
            for line in lines:
                if self._then is not None and "structuredContent" in (json.loads(line).get("result") or {}):
                    then, self._then = self._then, None
                    self.lost.append(line.decode())
                    then()
                    break
                relay.sendall(line)
        self._drop(relay, daemon)

    def _drop(self, *ends: socket.socket) -> None:
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._drop(*self._open)
