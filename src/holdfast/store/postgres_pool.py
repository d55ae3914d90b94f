"""Connection pool: keeps connections for the next call, reconnects when the server comes back, records outages."""

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
"""How long a call waits for a server that does not answer; a restart of PostgreSQL is usually over by then."""
RECONNECT_SECONDS = 3
PAUSE_MIN, PAUSE_MAX = 0.05, 0.5
IDLE_SECONDS = 600.0

_log = logging.getLogger(__name__)


class Pool:
    """All connections except the listening one: at most one per borrowing thread."""

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
        """Set while there is no outage, and when waiting for its end becomes pointless."""
        self._answers.set()

    @contextlib.contextmanager
    def borrowed(self, deadline: float) -> Iterator[WatchedConnection]:
        """Lend a connection; while the server is unreachable, wait for it until `deadline`."""
        connection = self._take_idle() or self._wait_for_server(deadline)
        try:
            yield connection
        finally:
            self.give_back(connection)

    def give_back(self, connection: WatchedConnection) -> None:
        """Return a connection that is no longer used to the pool."""
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

    def discard(self, connection: WatchedConnection) -> None:
        """Close a broken connection, and distrust the idle ones: they have probably lost the same server."""
        connection.close()
        with self._changing:
            self._lost_at = time.monotonic()
            if connection.backend is not None:
                self._lost.append(connection.backend)

    def stop_waiting(self) -> None:
        """Stop waiting for an unreachable server: the store is about to be closed."""
        self._closing.set()
        self._answers.set()

    def close(self) -> None:
        """Close every idle connection; borrowed ones are closed when they are returned."""
        self.stop_waiting()
        with self._changing:
            idle, self._idle = self._idle, []
        for one, _ in idle:
            one.close()

    def connect(self) -> WatchedConnection:
        """Connect once; raises StoreUnreachable, without trying during a known outage."""
        outage = self.outage
        if outage is not None:
            raise StoreUnreachable(outage.reason, recovery=outage.repair)
        try:
            connection = self._server.connect(RECONNECT_SECONDS)
        except StoreUnreachable as error:
            self._note_outage(error)
            raise
        self._terminate_lost(connection)
        return connection

    def wait_for_answer(self, seconds: float) -> None:
        """Wait until the server answers again, for at most `seconds`."""
        self._answers.wait(seconds)

    # -- internals ----------------------------------------------------------------------------------------------------

    def _take_idle(self) -> WatchedConnection | None:
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
                seconds_left = min(deadline, self._away_since + CALL_SECONDS) - time.monotonic()
                if seconds_left <= 0 or self._closing.is_set():
                    raise
            self.wait_for_answer(seconds_left)

    def _terminate_lost(self, connection: WatchedConnection) -> None:
        """Terminate the backends of lost connections: they would hold locks until the server notices by itself."""
        with self._changing:
            lost, self._lost = self._lost, []
        with contextlib.suppress(psycopg.OperationalError):  # the next user of the connection gets the same error
            for backend in lost:
                self._server.terminate_backend(connection, backend)

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
        """Retry until the server is back, on behalf of all calls: each would spend seconds on a failing attempt."""
        pause = PAUSE_MIN
        while not self._closing.wait(pause):
            try:
                connection = self._server.connect(RECONNECT_SECONDS)
            except StoreUnreachable as error:
                if self.outage is not None:
                    self.outage = replace(self.outage, reason=error.message)
                pause = min(pause * 2, PAUSE_MAX)
                continue
            self._terminate_lost(connection)
            with self._changing:
                self.outage = None
                self._answers.set()
            self.give_back(connection)
            _log.warning("The PostgreSQL server is reachable again after %.0f s.", time.monotonic() - self._away_since)
            return
