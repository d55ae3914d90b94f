"""Connections kept for the next call, made again when the server comes back, and what is known while it is away."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import psycopg

from holdfast.errors import StoreUnreachable
from holdfast.store.outage import Outage
from holdfast.store.postgres_connection import Backend, WatchedConnection
from holdfast.store.postgres_server import Server

CALL_SECONDS = 10.0
"""How long a call waits for a server that does not answer; a restart of PostgreSQL is mostly over by then."""
RECONNECT_SECONDS = 3
PAUSE_FIRST, PAUSE_MOST = 0.05, 0.5
IDLE_SECONDS = 600.0

_log = logging.getLogger(__name__)


class Pool:
    """Every connection but the listening one. As many as there are threads that borrow."""

    def __init__(self, server: Server) -> None:
        self.outage: Outage | None = None
        self._server = server
        self._idle: list[tuple[WatchedConnection, float]] = []
        self._lost: list[Backend] = []
        self._lost_at = 0.0
        self._away_since = 0.0
        self._changing = threading.Lock()
        self._closing = threading.Event()
        self._answers = threading.Event()
        """Set unless there is an outage, and when nobody should wait for its end any more."""
        self._answers.set()

    @contextlib.contextmanager
    def borrowed(self, deadline: float) -> Iterator[WatchedConnection]:
        """Lend a connection for a while; while the server is away, wait for it until `deadline`."""
        connection = self._kept() or self._wait_for_server(deadline)
        try:
            yield connection
        finally:
            self.keep(connection)

    def keep(self, connection: WatchedConnection) -> None:
        """Take a connection that nobody uses now."""
        now = time.monotonic()
        with self._changing:
            stale = [one for one, since in self._idle if now - since > IDLE_SECONDS]
            self._idle = [(one, since) for one, since in self._idle if now - since <= IDLE_SECONDS]
            if connection.closed or self._closing.is_set():
                stale.append(connection)
            else:
                self._idle.append((connection, now))
        for one in stale:
            one.close()

    def lose(self, connection: WatchedConnection) -> None:
        """Note that a connection broke: the idle ones have most likely lost the same server."""
        connection.close()
        with self._changing:
            self._lost_at = time.monotonic()
            if connection.backend is not None:
                self._lost.append(connection.backend)

    def hurry(self) -> None:
        """Wait no longer for a server that is away: the store is about to be closed."""
        self._closing.set()
        self._answers.set()

    def close(self) -> None:
        """Close every idle connection; those that are lent are closed when they come back."""
        self.hurry()
        with self._changing:
            idle, self._idle = self._idle, []
        for one, _ in idle:
            one.close()

    def connect(self) -> WatchedConnection:
        """Connect once; raises StoreUnreachable when the server is away, at once when that is known."""
        outage = self.outage
        if outage is not None:
            raise StoreUnreachable(outage.reason, recovery=outage.repair)
        try:
            connection = self._server.connect(RECONNECT_SECONDS)
        except StoreUnreachable as error:
            self._note_outage(error)
            raise
        self._end_lost(connection)
        return connection

    def wait_for_answer(self, seconds: float) -> None:
        """Wait until the server answers again, at most so long."""
        self._answers.wait(seconds)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _kept(self) -> WatchedConnection | None:
        while True:
            with self._changing:
                if not self._idle:
                    return None
                connection, _ = self._idle.pop()
            if connection.made > self._lost_at:
                return connection
            connection.close()

    def _wait_for_server(self, deadline: float) -> WatchedConnection:
        while True:
            try:
                return self.connect()
            except StoreUnreachable:
                left = min(deadline, self._away_since + CALL_SECONDS) - time.monotonic()
                if left <= 0 or self._closing.is_set():
                    raise
            self.wait_for_answer(left)

    def _end_lost(self, connection: WatchedConnection) -> None:
        """What a lost connection had begun would hold its locks until the server notices by itself."""
        with self._changing:
            lost, self._lost = self._lost, []
        with contextlib.suppress(psycopg.OperationalError):  # whoever uses the connection next meets the same
            for backend in lost:
                self._server.end(connection, backend)

    def _note_outage(self, error: StoreUnreachable) -> None:
        outage = Outage(int(time.time() * 1000), error.message, error.recovery)
        with self._changing:
            if self.outage is not None or self._closing.is_set():
                return
            self.outage = outage
            self._away_since = time.monotonic()
            self._answers.clear()
        _log.warning("%s", outage.reason)
        threading.Thread(target=self._reconnect, name="store-reconnect", daemon=True).start()

    def _reconnect(self) -> None:
        """Try until the server is back, on behalf of all: an attempt into a black hole would take each call seconds."""
        pause = PAUSE_FIRST
        while not self._closing.wait(pause):
            try:
                connection = self._server.connect(RECONNECT_SECONDS)
            except StoreUnreachable as error:
                if self.outage is not None:
                    self.outage = replace(self.outage, reason=error.message)
                pause = min(pause * 2, PAUSE_MOST)
                continue
            self._end_lost(connection)
            with self._changing:
                self.outage = None
                self._answers.set()
            self.keep(connection)
            _log.warning("The PostgreSQL server answers again, after %.0f s.", time.monotonic() - self._away_since)
            return
