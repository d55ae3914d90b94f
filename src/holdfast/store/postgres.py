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
from holdfast.store.sqlite import random_id

T = TypeVar("T")

Connection = psycopg.Connection[Row]

CONNECTIONS = 8
ATTEMPTS = 12
"""How often a closure is run when the server keeps choosing it as the victim of a deadlock or hangs up on it."""
SETTLE_SECONDS = 4.0
"""How long the outcome of a commit is asked for at least, however long the call took before."""
SETTLE_PAUSE = 0.05
CHANNEL = "holdfast_events"
LOOK_SECONDS = 0.5
"""How long the listening thread waits at a stretch before it looks whether it should end."""
RECONNECT_FIRST, RECONNECT_MOST = 0.1, 5.0

_log = logging.getLogger(__name__)


def no_offset() -> int:
    """The server's clock as it is."""
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
        """The server's number of this transaction, known once it is about to be committed; None if it wrote nothing."""
        self.trace: tuple[int, str] | None = None
        """The number and the hash of the last event of this transaction, by which it is known again."""

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
                raise StoreError("The database server did not tell the time.")
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
        """Write the emitted events, and tell every daemon on this schema once they are committed."""
        # The number goes with the last statement there is anyway; it tells the outcome of a commit without an answer.
        if self._outbox:
            events.append(self, self._outbox)
            told = f"{_NUMBER}, pg_notify(:channel, :schema){_LAST_EVENT if self._outbox.pending else ''}"
            row = self.one(told, channel=CHANNEL, schema=self._schema)
        else:
            row = self.one(_NUMBER)
        if row is not None:
            self.number = row["number"]
            self.trace = (row["seq"], row["hash"]) if self._outbox.pending else None

    def _execute(self, sql: str, params: dict[str, Any]) -> psycopg.Cursor[Row]:
        nulls = frozenset(name for name, value in params.items() if value is None)
        # The schema keeps flags as integers on both engines; PostgreSQL would not take a boolean for one.
        bound = {name: int(value) if isinstance(value, bool) else value for name, value in params.items()}
        # The text is the capability's own SQL; what comes from outside is only ever bound.
        return self._connection.execute(for_psycopg(sql, nulls), bound)


class _RunAgain(Exception):
    """The transaction left no trace and may be run again."""

    def __init__(self, cause: psycopg.Error, *, lost: bool = False) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.lost = lost
        """Whether the connection was, and not only the transaction."""


class PostgresStore:
    """The engine for many machines."""

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
        """Since when the server is known to be away; None while it answers."""
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
        store._pool.keep(connection)
        return store

    async def write(self, fn: Callable[[Tx], T]) -> T:
        """Run `fn` in a transaction; when this returns, its effect is on disk."""
        return await self._in_thread(lambda deadline: self._write_once(fn, deadline))

    async def read(self, fn: Callable[[Tx], T]) -> T:
        """Run `fn` on a consistent snapshot."""
        return await self._in_thread(lambda deadline: self._read_once(fn, deadline))

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` after events were committed, by whichever daemon."""
        stop = self._listeners.add(wake)
        if self._listening is None:
            self._listening = threading.Thread(target=self._listen_loop, name="store-listen", daemon=True)
            self._listening.start()
        return stop

    async def close(self) -> None:
        """Finish what is queued and close every connection; nothing waits for a server that is away."""
        if not self._backlog.close():
            return
        self._stop.set()
        self._pool.hurry()
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
            # Counted from here: while the server is away, calls wait behind others that wait for it.
            done: Future[T] = self._workers.submit(self._repeat, once, time.monotonic() + CALL_SECONDS)
        except BaseException:
            self._backlog.leave()
            raise
        # The place is given back when the work ends, not when its caller stops waiting for it.
        done.add_done_callback(lambda _: self._backlog.leave())
        return await asyncio.wrap_future(done)

    def _repeat(self, once: Callable[[float], T], deadline: float) -> T:
        for attempt in range(1, ATTEMPTS + 1):
            is_last = time.monotonic() > deadline
            try:
                return once(deadline)
            except _RunAgain as again:
                if again.lost and is_last:
                    raise self.server.unreachable(self.server.without_password(again.cause)) from None
                if attempt == ATTEMPTS:
                    raise self.server.refused(again.cause) from again.cause
                # Two victims of one deadlock must not meet again at once.
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
                raise self._undone(connection, error) from error
            self._commit(connection, tx, deadline)
            return value

    def _read_once(self, fn: Callable[[Tx], T], deadline: float) -> T:
        with self._pool.borrowed(deadline) as connection:
            try:
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                value = fn(PostgresTx(connection, self.schema, self._offset, self.ids))
            except BaseException as error:
                raise self._undone(connection, error) from error
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
            self._pool.lose(connection)
            if tx.number is None or self._took_effect(tx, connection, deadline):
                return
            raise _RunAgain(error, lost=True) from error

    def _took_effect(self, tx: PostgresTx, lost: WatchedConnection, deadline: float) -> bool:
        """Ask the server how a transaction ended whose commit got no answer.

        A new connection ends the lost one's process first, so "in progress" does not last.
        """
        deadline = max(deadline, time.monotonic() + SETTLE_SECONDS)
        while True:
            crashed, ended = False, None
            try:
                with self._pool.borrowed(deadline) as connection:
                    crashed = not _of_one_life(lost, connection)
                    ended = _what_it_left(connection, tx) if crashed else _how_it_ended(connection, tx)
                reason = "the server crashed" if crashed else "the server has not ended the transaction yet"
            except (psycopg.Error, StoreError) as error:
                crashed, reason = False, self.server.without_password(error)
            if ended is not None:
                return ended
            if crashed or time.monotonic() > deadline or self._stop.is_set():
                raise OutcomeUnknown(
                    f"The connection to PostgreSQL ({self.server}) broke while the change was being committed."
                    f" It is not known whether it took effect: {reason}.",
                    recovery="Look before you repeat it: repeated, it may take effect twice.",
                )
            time.sleep(SETTLE_PAUSE)

    def _undone(self, connection: WatchedConnection, error: BaseException) -> BaseException:
        """Undo the transaction and say what its error means: run again, refused, or the closure's own."""
        self._rollback(connection)
        if not isinstance(error, psycopg.Error):
            return error
        if isinstance(error, refusals.DeadlockDetected | refusals.SerializationFailure):
            return _RunAgain(error)
        if connection.closed:
            self._pool.lose(connection)
            return _RunAgain(error, lost=True)
        if isinstance(error, refusals.InFailedSqlTransaction):
            # The closure caught an error of the server's; a COMMIT would be a ROLLBACK without a word.
            return StoreError("The database undid the change because one of its statements had failed.")
        return self.server.refused(error)

    @staticmethod
    def _rollback(connection: WatchedConnection) -> None:
        if connection.closed:
            return
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            connection.close()  # the server undoes what a lost connection had begun; the pool opens another

    def _listen_loop(self) -> None:
        wait = RECONNECT_FIRST
        while not self._stop.is_set():
            try:
                with self._pool.connect() as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    wait = RECONNECT_FIRST
                    self._listeners.wake()  # for what was committed while nobody listened
                    while not self._stop.is_set():
                        self._pass_on(connection)
            except (psycopg.Error, StoreError) as error:
                _log.warning("Lost the database's wake-ups, connecting again: %s", self.server.without_password(error))
                self._stop.wait(wait)
                wait = min(wait * 2, RECONNECT_MOST)
                self._pool.wait_for_answer(RECONNECT_MOST)

    def _pass_on(self, connection: Connection) -> None:
        for notice in connection.notifies(timeout=LOOK_SECONDS, stop_after=1):
            if notice.payload == self.schema:
                self._listeners.wake()


def _of_one_life(lost: WatchedConnection, connection: WatchedConnection) -> bool:
    """Whether the server has not crashed between two connections: a crash gives transactions' numbers away again."""
    return lost.backend is not None and connection.backend is not None and lost.backend.life == connection.backend.life


def _how_it_ended(connection: WatchedConnection, tx: PostgresTx) -> bool | None:
    """Whether a transaction was committed; None while it goes on."""
    row = connection.execute("SELECT pg_xact_status(%s::xid8) AS status", (tx.number,)).fetchone()
    return row["status"] == "committed" if row is not None and row["status"] in ("committed", "aborted") else None


def _what_it_left(connection: WatchedConnection, tx: PostgresTx) -> bool | None:
    """Whether a transaction from before a crash took effect, by its last event; None where nothing tells."""
    if tx.trace is not None:
        row = connection.execute(_EVENT, tx.trace[:1]).fetchone()
        return row is not None and row["hash"] == tx.trace[1]
    with contextlib.suppress(refusals.InvalidParameterValue):  # the number was not given away again yet
        return False if _how_it_ended(connection, tx) is False else None
    return False
