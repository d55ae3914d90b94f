"""A newer version takes over: the older daemon serves until a daemon of the newer one waits for its place.

A relay that says it is newer only learns that it should start its own daemon. That daemon holds the turn to start one,
so no older relay can bring the older daemon back meanwhile, and asks for the place on a connection that it keeps open:
if it dies, the older daemon stays, or is started again at once.
"""

from __future__ import annotations

import contextlib
import json
import socket
from pathlib import Path

from holdfast.relay import place
from holdfast.version import __version__

ANSWER_SECONDS = 10.0


class PlaceRequest:
    """A newer daemon's request for the place of the one that serves; it counts while its connection is open."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    @staticmethod
    def send(home: Path) -> PlaceRequest | None:
        """Ask the daemon that serves `home` for its place; None when it keeps it, because it is not older."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(ANSWER_SECONDS)
        try:
            connection.connect(place.socket_path(str(home)))
            connection.sendall(json.dumps({"holdfast": "successor", "version": __version__}).encode() + b"\n")
            with connection.makefile("rb") as answers:
                answer = json.loads(answers.readline())
        except (OSError, ValueError):  # it ended, or is too old to know of successors
            answer = None
        if not isinstance(answer, dict) or answer.get("holdfast") != "making-room":
            connection.close()
            return None
        connection.setblocking(False)
        return PlaceRequest(connection)

    @property
    def open(self) -> bool:
        """Whether the daemon that was asked still runs."""
        try:
            return bool(self._connection.recv(1))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def close(self) -> None:
        """Withdraw the request."""
        with contextlib.suppress(OSError):
            self._connection.close()
