"""PostgreSQL through psycopg: pooled connections in threads, one transaction per closure, LISTEN for wake-ups."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import psycopg
from psycopg import errors as refusals

from holdfast.errors import OutcomeUnknown, StoreError
from holdfast.ids import random_id
from holdfast.store import Ids, Row, Tx, events
from holdfast.store.backlog import Backlog
from holdfast.store.listeners import Listeners
from holdfast.store.migrations import Migration
from holdfast.store.outage import Outage
from holdfast.store.placeholders import for_psycopg
from holdfast.store.postgres_connection import WatchedConnection
from holdfast.store.postgres_pool import CALL_SECONDS, Pool
from holdfast.store.postgres_server import Server, advisory_key, schema_of
from holdfast.store.postgres_server import migrate as migrate_server

T = TypeVar("T")

Connection = psycopg.Connection[Row]

CONNECTIONS = 8
ATTEMPTS = 12
"""How often a closure is tried when the server keeps choosing it as a deadlock victim or dropping its connection."""
SETTLE_SECONDS = 4.0
"""Minimum time spent on finding out the outcome of a commit, however long the call has already taken."""
SETTLE_PAUSE = 0.05
CHANNEL = "holdfast_events"
LISTEN_SECONDS = 0.5
"""How long the listening thread waits at a time before it checks whether it should stop."""
RECONNECT_MIN, RECONNECT_MAX = 0.1, 5.0

_log = logging.getLogger(__name__)


def no_offset() -> int:
    """Return 0: use the server's clock unchanged."""
    return 0


_NUMBER = "SELECT pg_current_xact_id_if_assigned()::text AS number"
_HASH = "md5(at || ' ' || kind || ' ' || subject || ' ' || data) AS hash FROM events WHERE seq ="
_LAST_EVENT = f", seq, {_HASH} (SELECT seq FROM event_head WHERE id = 1)"  # noqa: S608 - constants alone
_EVENT = f"SELECT {_HASH} %s"


class PostgresTx:
    """One PostgreSQL transaction."""

    engine = "postgres"

    def __init__(self, connection: Connection, schema: str, offset: Callable[[], int], ids: Ids) -> None:
        self._connection = connection
        self._schema = schema
        self._offset = offset
        self._ids = ids
        self._now: int | None = None
        self._outbox = events.Outbox()
        self.number: str | None = None
        """The server's id of this transaction, known just before the commit; None if it wrote nothing."""
        self.trace: tuple[int, str] | None = None
        """Number and hash of the transaction's last event, which identify it after a crash."""

    def one(self, sql: str, /, **params: Any) -> Row | None:
        rows = self.all(sql, **params)
        return rows[0] if rows else None

    def all(self, sql: str, /, **params: Any) -> list[Row]:
        cursor = self._execute(sql, params)
        return cursor.fetchall() if cursor.description is not None else []

    def run(self, sql: str, /, **params: Any) -> int:
        return max(self._execute(sql, params).rowcount, 0)

    def now(self) -> int:
        if self._now is None:
            row = self.one("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms")
            if row is None:
                raise StoreError("The database server did not return the time.")
            self._now = int(row["ms"]) + self._offset()
        return self._now

    def new_id(self) -> str:
        return self._ids()

    def lock(self, name: str) -> None:
        self._execute("SELECT pg_advisory_xact_lock(:key)", {"key": advisory_key(self._schema, name)})

    def emit(self, kind: str, subject: str, data: dict[str, Any] | None = None) -> None:
        self._outbox.pending.append((kind, subject, data or {}))

    def tally(self, heads: int, sessions: int = 0) -> None:
        self._outbox.tally(heads, sessions)

    def flush(self) -> None:
        """Write the emitted events and notify every daemon on this schema once they are committed."""
        # The id rides on the last statement; with it the outcome of an unanswered commit can be looked up.
        if self._outbox:
            events.append(self, self._outbox)
            notify = f"{_NUMBER}, pg_notify(:channel, :schema){_LAST_EVENT if self._outbox.pending else ''}"
            row = self.one(notify, channel=CHANNEL, schema=self._schema)
        else:
            row = self.one(_NUMBER)
        if row is not None:
            self.number = row["number"]
            self.trace = (row["seq"], row["hash"]) if self._outbox.pending else None

    def _execute(self, sql: str, params: dict[str, Any]) -> psycopg.Cursor[Row]:
        nulls = frozenset(name for name, value in params.items() if value is None)
        # The schema stores flags as integers on both engines; PostgreSQL would reject a boolean.
        bound = {name: int(value) if isinstance(value, bool) else value for name, value in params.items()}
        # The SQL is the capability's own; outside values are always bound as parameters.
        return self._connection.execute(for_psycopg(sql, nulls), bound)


class _RunAgain(Exception):
    """The transaction had no effect and may be run again."""

    def __init__(self, cause: psycopg.Error, *, lost: bool = False) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.lost = lost
        """Whether the connection was lost too, not only the transaction."""


class PostgresStore:
    """The engine for several machines: a PostgreSQL schema."""

    engine = "postgres"

    def __init__(
        self, server: Server, schema: str, *, clock_offset: Callable[[], int] = no_offset, ids: Ids = random_id
    ) -> None:
        self.server = server
        self.schema = schema
        self.ids = ids
        self._offset = clock_offset
        self._backlog = Backlog()
        self._listeners = Listeners()
        self._listening: threading.Thread | None = None
        self._stop = threading.Event()
        self._workers = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="store")
        self._pool = Pool(server)

    @property
    def outage(self) -> Outage | None:
        """The current outage; None while the server answers."""
        return self._pool.outage

    @staticmethod
    def open(
        url: str,
        *,
        clock_offset: Callable[[], int] = no_offset,
        ids: Ids = random_id,
        known: list[Migration] | None = None,
        before_migration: Callable[[Connection, Migration], None] | None = None,
    ) -> PostgresStore:
        """Connect to the server at `url` and bring the schema named by its search_path up to date.

        `before_migration` is called with the first pending step, on a store that already has data.
        """
        server = Server(url)
        connection = server.connect()
        try:
            schema = schema_of(connection, server)
            try:
                migrate_server(connection, schema, known, before_migration)
            except psycopg.Error as error:
                raise server.refused(error) from error
        except BaseException:
            connection.close()
            raise
        store = PostgresStore(server, schema, clock_offset=clock_offset, ids=ids)
        store._pool.give_back(connection)
        return store

    async def write(self, fn: Callable[[Tx], T]) -> T:
        """Run `fn` in a transaction; when this returns, its effect is on disk."""
        return await self._in_thread(lambda deadline: self._write_once(fn, deadline))

    async def read(self, fn: Callable[[Tx], T]) -> T:
        """Run `fn` on a consistent snapshot."""
        return await self._in_thread(lambda deadline: self._read_once(fn, deadline))

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` whenever any daemon commits events."""
        stop = self._listeners.add(wake)
        if self._listening is None:
            self._listening = threading.Thread(target=self._listen_loop, name="store-listen", daemon=True)
            self._listening.start()
        return stop

    async def close(self) -> None:
        """Finish the queued work and close every connection, without waiting for an unreachable server."""
        if not self._backlog.close():
            return
        self._stop.set()
        self._pool.stop_waiting()
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        self._workers.shutdown()
        if self._listening is not None:
            self._listening.join()
        self._pool.close()

    # -- threads ----------------------------------------------------------------------------------------------------

    async def _in_thread(self, once: Callable[[float], T]) -> T:
        self._backlog.enter()
        try:
            # Counted from here: during an outage calls queue behind others that wait for the server.
            done: Future[T] = self._workers.submit(self._with_retries, once, time.monotonic() + CALL_SECONDS)
        except BaseException:
            self._backlog.leave()
            raise
        # The slot is freed when the work ends, not when its caller stops waiting for it.
        done.add_done_callback(lambda _: self._backlog.leave())
        return await asyncio.wrap_future(done)

    def _with_retries(self, once: Callable[[float], T], deadline: float) -> T:
        for attempt in range(1, ATTEMPTS + 1):
            is_last = time.monotonic() > deadline
            try:
                return once(deadline)
            except _RunAgain as again:
                if again.lost and is_last:
                    raise self.server.unreachable(self.server.without_password(again.cause)) from None
                if attempt == ATTEMPTS:
                    raise self.server.refused(again.cause) from again.cause
                # Two victims of one deadlock must not collide again at once.
                time.sleep(random.uniform(0, 0.01) * attempt)  # noqa: S311 - no secret
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _write_once(self, fn: Callable[[Tx], T], deadline: float) -> T:
        with self._pool.borrowed(deadline) as connection:
            tx = PostgresTx(connection, self.schema, self._offset, self.ids)
            try:
                connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
                value = fn(tx)
                tx.flush()
            except BaseException as error:
                raise self._roll_back(connection, error) from error
            self._commit(connection, tx, deadline)
            return value

    def _read_once(self, fn: Callable[[Tx], T], deadline: float) -> T:
        with self._pool.borrowed(deadline) as connection:
            try:
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                value = fn(PostgresTx(connection, self.schema, self._offset, self.ids))
            except BaseException as error:
                raise self._roll_back(connection, error) from error
            self._rollback(connection)
            return value

    def _commit(self, connection: WatchedConnection, tx: PostgresTx, deadline: float) -> None:
        try:
            connection.execute("COMMIT")
        except psycopg.Error as error:
            if isinstance(error, refusals.DeadlockDetected | refusals.SerializationFailure):
                raise _RunAgain(error) from error
            if not connection.closed:
                raise self.server.refused(error) from error
            self._pool.discard(connection)
            if tx.number is None or self._took_effect(tx, connection, deadline):
                return
            raise _RunAgain(error, lost=True) from error

    def _took_effect(self, tx: PostgresTx, lost: WatchedConnection, deadline: float) -> bool:
        """Find out whether a transaction whose commit got no answer took effect.

        A new connection first terminates the lost one's backend, so "in progress" does not last.
        """
        deadline = max(deadline, time.monotonic() + SETTLE_SECONDS)
        while True:
            crashed, ended = False, None
            try:
                with self._pool.borrowed(deadline) as connection:
                    crashed = not _is_same_server_run(lost, connection)
                    ended = _outcome_after_crash(connection, tx) if crashed else _transaction_outcome(connection, tx)
                reason = "the server crashed" if crashed else "the server has not ended the transaction yet"
            except (psycopg.Error, StoreError) as error:
                crashed, reason = False, self.server.without_password(error)
            if ended is not None:
                return ended
            if crashed or time.monotonic() > deadline or self._stop.is_set():
                raise OutcomeUnknown(
                    f"The connection to PostgreSQL ({self.server}) broke while the change was being committed."
                    f" It is not known whether it took effect: {reason}.",
                    recovery="Check whether it did before you repeat it; otherwise it may take effect twice.",
                )
            time.sleep(SETTLE_PAUSE)

    def _roll_back(self, connection: WatchedConnection, error: BaseException) -> BaseException:
        """Roll back and translate the error: run again, refused by the server, or the closure's own."""
        self._rollback(connection)
        if not isinstance(error, psycopg.Error):
            return error
        if isinstance(error, refusals.DeadlockDetected | refusals.SerializationFailure):
            return _RunAgain(error)
        if connection.closed:
            self._pool.discard(connection)
            return _RunAgain(error, lost=True)
        if isinstance(error, refusals.InFailedSqlTransaction):
            # The closure swallowed a server error; a COMMIT would silently roll back.
            return StoreError("The database undid the change because one of its statements had failed.")
        return self.server.refused(error)

    @staticmethod
    def _rollback(connection: WatchedConnection) -> None:
        if connection.closed:
            return
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            connection.close()  # the server rolls back the lost connection's transaction; the pool opens another

    def _listen_loop(self) -> None:
        wait = RECONNECT_MIN
        while not self._stop.is_set():
            try:
                with self._pool.connect() as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    wait = RECONNECT_MIN
                    self._listeners.wake()  # for events committed while nothing listened
                    while not self._stop.is_set():
                        self._wake_on_notice(connection)
            except (psycopg.Error, StoreError) as error:
                _log.warning("Lost the LISTEN connection, reconnecting: %s", self.server.without_password(error))
                self._stop.wait(wait)
                wait = min(wait * 2, RECONNECT_MAX)
                self._pool.wait_for_answer(RECONNECT_MAX)

    def _wake_on_notice(self, connection: Connection) -> None:
        for notice in connection.notifies(timeout=LISTEN_SECONDS, stop_after=1):
            if notice.payload == self.schema:
                self._listeners.wake()


def _is_same_server_run(lost: WatchedConnection, connection: WatchedConnection) -> bool:
    """Return whether the server did not crash between two connections: after a crash transaction ids are reused."""
    return lost.backend is not None and connection.backend is not None and lost.backend.life == connection.backend.life


def _transaction_outcome(connection: WatchedConnection, tx: PostgresTx) -> bool | None:
    """Return whether a transaction was committed; None while it is in progress."""
    row = connection.execute("SELECT pg_xact_status(%s::xid8) AS status", (tx.number,)).fetchone()
    return row["status"] == "committed" if row is not None and row["status"] in ("committed", "aborted") else None


def _outcome_after_crash(connection: WatchedConnection, tx: PostgresTx) -> bool | None:
    """Return whether a transaction from before a crash took effect, by its last event; None if that is unknown."""
    if tx.trace is not None:
        row = connection.execute(_EVENT, tx.trace[:1]).fetchone()
        return row is not None and row["hash"] == tx.trace[1]
    with contextlib.suppress(refusals.InvalidParameterValue):  # the id was not reused yet
        return False if _transaction_outcome(connection, tx) is False else None
    return False
