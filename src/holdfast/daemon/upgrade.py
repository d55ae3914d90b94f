"""Upgrade under running agents: the older daemon serves until a daemon of the newer version is ready to take over.

A newer relay is only told to start a daemon of its own version. That daemon holds the right to start one, so that no
older relay brings the older daemon back meanwhile, and asks to take over on a connection that it keeps open: if it
dies, the older daemon stays, or is started again at once.
"""

from __future__ import annotations

import contextlib
import json
import socket
from pathlib import Path

from holdfast.relay import place
from holdfast.version import __version__

ANSWER_SECONDS = 10.0


class UpgradeRequest:
    """A newer daemon's request to take over from the one that serves; it counts while its connection is open."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    @staticmethod
    def send(home: Path) -> UpgradeRequest | None:
        """Ask the daemon that serves `home` to end; None if it stays, because it is not older."""
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
        return UpgradeRequest(connection)

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
