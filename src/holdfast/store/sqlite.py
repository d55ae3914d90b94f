"""SQLite through apsw: one writer thread with group commit, a few readers, WAL, synchronous=FULL."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import apsw

from holdfast.errors import StoreCorrupt, StoreError, StoreRemoved
from holdfast.files.errors import why_not_writable
from holdfast.ids import random_id
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Clock, Ids, Row, Tx, events
from holdfast.store.backlog import Backlog
from holdfast.store.files import beside, publish, remove_companions, remove_database, replace_database, utc_stamp
from holdfast.store.listeners import Listeners
from holdfast.store.migrations import LEDGER, Migration, load, pending
from holdfast.store.presence import Presence
from holdfast.store.sqlite_job import Job, deliver
from holdfast.store.sqlite_readers import Readers
from holdfast.version import __version__

T = TypeVar("T")

_log = logging.getLogger(__name__)

GROUP_LIMIT = 128
BUSY_TIMEOUT_MS = 10_000
RELEASE_WAITERS_AFTER = 100
"""Number of statements after which a closure counts as long, and callers of the previous group stop waiting for it."""
CHECKPOINT_PAGES = 4_000
"""Pages in the log before it is copied into the file: 16 MB. Each copy takes a few milliseconds."""
PRESENCE_CHECK_SECONDS = 0.1
"""How often a commit checks that the file still exists; checking every time would add a tenth to its cost."""
MAX_CACHED_STATEMENTS = 2_000

SALVAGE_ON_RESTART = "The next start of the daemon (`holdfast serve`) salvages what can be read and names what is lost."

_columns: dict[str, list[str]] = {}
"""Column names by statement: asking SQLite for them costs as much as the statement itself."""


def system_clock() -> int:
    """Return the milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class SqliteTx:
    """One SQLite transaction; all rows are fetched at once, so no cursor stays open."""

    engine = "sqlite"

    def __init__(
        self, connection: apsw.Connection, clock: Clock, ids: Ids, release_waiters: Callable[[], None] = lambda: None
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._ids = ids
        self._release_waiters = release_waiters
        self._statements = 0
        self._now: int | None = None
        self._outbox = events.Outbox()

    def one(self, sql: str, /, **params: Any) -> Row | None:
        rows = self.all(sql, **params)
        return rows[0] if rows else None

    def all(self, sql: str, /, **params: Any) -> list[Row]:
        cursor = self._execute(sql, params)
        names = _columns.get(sql)
        if names is None:
            try:
                names = [column[0] for column in cursor.get_description()]
            except apsw.ExecutionCompleteError:
                return []
            if len(_columns) < MAX_CACHED_STATEMENTS:
                _columns[sql] = names
        try:
            rows = cursor.fetchall()
        except UnicodeDecodeError:
            rows = self._decode_damaged(sql, params, len(names))
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _decode_damaged(self, sql: str, params: dict[str, Any], width: int) -> list[tuple[Any, ...]]:
        """Repeat a query whose result has text that is not UTF-8, with U+FFFD for the bytes that cannot be decoded.

        Only that text is damaged; its hash no longer matches, which `holdfast verify` reports.
        """
        columns = [f"c{number}" for number in range(width)]
        parts = ", ".join(
            f"typeof({c}), CASE typeof({c}) WHEN 'text' THEN CAST({c} AS BLOB) ELSE {c} END" for c in columns
        )
        again = f"WITH found({', '.join(columns)}) AS ({sql}) SELECT {parts} FROM found"  # noqa: S608 - our own SQL
        rows = self._execute(again, params)
        return [
            tuple(
                value.decode("utf-8", "replace") if kind == "text" and isinstance(value, bytes) else value
                for kind, value in zip(row[::2], row[1::2], strict=True)
            )
            for row in rows.fetchall()
        ]

    def run(self, sql: str, /, **params: Any) -> int:
        self._execute(sql, params).fetchall()
        return self._connection.changes()

    def _execute(self, sql: str, params: dict[str, Any]) -> apsw.Cursor:
        self._statements += 1
        if self._statements == RELEASE_WAITERS_AFTER:
            self._release_waiters()
        return self._connection.execute(sql, params)

    def now(self) -> int:
        if self._now is None:
            self._now = self._clock()
        return self._now

    def new_id(self) -> str:
        return self._ids()

    def lock(self, name: str) -> None:
        """Do nothing: SQLite has one writer."""

    def emit(self, kind: str, subject: str, data: dict[str, Any] | None = None) -> None:
        self._outbox.pending.append((kind, subject, data or {}))

    def tally(self, heads: int, sessions: int = 0) -> None:
        self._outbox.tally(heads, sessions)

    def flush(self) -> bool:
        """Write the emitted events; returns whether there were any."""
        if not self._outbox:
            return False
        events.append(self, self._outbox)
        return True


@dataclass(slots=True)
class _Write(Job):
    """One queued write."""

    alone: Callable[[apsw.Connection], Any] | None = None
    """Runs instead of `fn`, outside a transaction."""


def connect(path: Path, *, readonly: bool = False) -> apsw.Connection:
    """Open a connection with the settings that every part of Holdfast relies on."""
    # A reader that recreated a removed file would empty the log of the database that is still open.
    flags = apsw.SQLITE_OPEN_READWRITE | (0 if readonly else apsw.SQLITE_OPEN_CREATE)
    connection = apsw.Connection(str(path), flags=flags, statementcachesize=200)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)  # otherwise each new bound value would replan the statement
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA temp_store = MEMORY")  # every RETURNING makes a temporary table
    connection.execute("PRAGMA secure_delete = FAST").fetchall()
    connection.execute("PRAGMA cache_size = -16000")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}").fetchall()
    if readonly:
        connection.execute("PRAGMA query_only = ON")
    return connection


def applied_migrations(connection: apsw.Connection) -> list[tuple[int, str, str]]:
    """Return (number, name, program) of every migration applied to this file; empty for a new one."""
    tables = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'").fetchall()
    if not tables:
        return []
    return list(connection.execute("SELECT number, name, program FROM schema_migrations ORDER BY number"))


def migrate(connection: apsw.Connection, clock: Clock, steps: list[Migration]) -> None:
    """Apply `steps`, each in its own transaction; for a new store all in one, as each commit waits for the disk."""
    # With foreign keys on, a step that rebuilds a table would cascade-delete every row that refers to it.
    connection.execute("PRAGMA foreign_keys = OFF")
    try:
        for together in [[step] for step in steps] if applied_migrations(connection) else [steps]:
            _migrate(connection, clock, together)
    finally:
        connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA temp_store = MEMORY")  # every RETURNING makes a temporary table


def _migrate(connection: apsw.Connection, clock: Clock, steps: list[Migration]) -> None:
    """Apply `steps` in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have migrated between our look at the ledger and this lock.
        done = {number for number, _, _ in applied_migrations(connection)}
        for step in steps:
            if step.number not in done:
                _migrate_one(connection, clock, step)
    except BaseException:
        if not connection.get_autocommit():
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _migrate_one(connection: apsw.Connection, clock: Clock, step: Migration) -> None:
    connection.execute(LEDGER).fetchall()
    connection.execute(step.scripts["sqlite"]).fetchall()
    orphan = connection.execute("PRAGMA foreign_key_check").fetchall()
    if orphan:
        raise StoreError(
            f"Migration {step.number:04} {step.name} would leave rows in {orphan[0][0]} that refer to missing rows."
        )
    connection.execute(
        "INSERT INTO schema_migrations (number, name, program, applied_at) VALUES (?, ?, ?, ?)",
        (step.number, step.name, __version__, clock()),
    )


def to_store_error(error: apsw.Error, path: Path) -> StoreError:
    """Translate a SQLite error into the StoreError that callers see."""
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return StoreCorrupt(f"The database {path.name} is damaged ({error}).", recovery=SALVAGE_ON_RESTART)
    if isinstance(error, apsw.FullError):
        return StoreError("The disk is full; nothing was written.", recovery="Free disk space and repeat the call.")
    if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError | apsw.IOError | apsw.PermissionsError):
        reason = why_not_writable(path)
        if reason is not None:
            return StoreError(f"The database {path} cannot be written: {reason.text}.", recovery=reason.recovery)
        what = "cannot be opened" if isinstance(error, apsw.CantOpenError) else "could not be read or written"
        return StoreError(
            f"The database {path} {what} ({error}); nothing was written.",
            recovery="Check the disk (see `dmesg` and `df`), then repeat the call.",
        )
    return StoreError(f"The database refused: {error}")


class SqliteStore:
    """The embedded engine: one SQLite file."""

    engine = "sqlite"
    outage = None

    def __init__(self, path: Path, *, clock: Clock = system_clock, ids: Ids = random_id) -> None:
        self.path = path
        self.clock = clock
        self.ids = ids
        self.corrupt: Callable[[StoreCorrupt], None] = lambda error: None
        """Called once, from the thread that notices, when the file turns out to be damaged."""
        self.removed: Callable[[StoreRemoved], None] = lambda error: None
        """Called from the writer's thread when the file turns out to be removed or replaced."""
        self._reported = threading.Event()
        self._jobs: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._unanswered: tuple[list[_Write], bool] = ([], False)
        """The last committed group, its callers still waiting, and whether it emitted events; writer thread only."""
        self._backlog = Backlog()
        self._listeners = Listeners()
        self._opened: list[apsw.Connection] = []
        self._connection = self._open(readonly=False)
        self._presence = Presence(path)
        self._next_presence_check = 0.0
        self._readers = Readers(self._open_reader, self._read, self._backlog.leave)
        self._writer = threading.Thread(target=self._write_loop, name="store-write", daemon=True)
        self._writer.start()

    @staticmethod
    def open(
        path: Path,
        *,
        clock: Clock = system_clock,
        ids: Ids = random_id,
        known: list[Migration] | None = None,
        before_migration: Callable[[apsw.Connection, Migration], None] | None = None,
    ) -> SqliteStore:
        """Open or create the file at `path` and bring its schema up to date.

        `before_migration` is called with the first pending step, on a store that already has data.
        """
        try:
            connection = connect(path)
        except apsw.Error as error:
            raise to_store_error(error, path) from error
        try:
            applied = applied_migrations(connection)
            steps = pending(applied, load() if known is None else known)
            if steps and applied and before_migration is not None:
                before_migration(connection, steps[0])
            migrate(connection, clock, steps)
        except apsw.Error as error:
            raise to_store_error(error, path) from error
        finally:
            connection.close()
        return SqliteStore(path, clock=clock, ids=ids)

    async def write(self, fn: Callable[[Tx], T]) -> T:
        """Run `fn` in a transaction; when this returns, its effect is on disk."""
        loop = asyncio.get_running_loop()
        job = _Write(fn, loop.create_future())
        self._backlog.enter()
        self._jobs.put(job)
        result: T = await job.done
        return result

    async def alone(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run `work` on the writer's connection between two transactions; other writes wait meanwhile."""
        loop = asyncio.get_running_loop()
        job = _Write(lambda tx: None, loop.create_future(), alone=work)
        self._backlog.enter()
        self._jobs.put(job)
        result: T = await job.done
        return result

    async def read(self, fn: Callable[[Tx], T]) -> T:
        """Run `fn` on a consistent snapshot."""
        self._backlog.enter()
        return await self._readers.read(fn)

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` after events were committed."""
        return self._listeners.add(wake)

    def report_damage(self, damage: StoreCorrupt) -> None:
        """Call `corrupt`, the first time only."""
        if not self._reported.is_set():
            self._reported.set()
            try:
                self.corrupt(damage)
            except Exception:  # noqa: BLE001 - it is logged; the writer must continue even if the callback fails
                _log.exception("The damage to %s could not be reported.", self.path.name)

    async def check_presence(self) -> None:
        """Check that the file was not removed, even when nothing is being written."""
        if await asyncio.to_thread(self._presence.problem):
            self._next_presence_check = 0.0
            with contextlib.suppress(StoreRemoved):
                await self.write(lambda tx: None)

    async def put_back(self) -> Path | None:
        """Write the contents of the open file back under its name; returns where the file found there is kept.

        The kernel keeps a removed file while it is open, so nothing that was acknowledged is lost.
        """
        return await self.alone(self._put_back)

    def _put_back(self, connection: apsw.Connection) -> Path | None:
        draft = beside(self.path, ".putting-back")
        aside = beside(self.path, f".replaced-{utc_stamp(self.clock())}")
        remove_database(draft)
        try:
            draft.touch(mode=0o600)
            copy = apsw.Connection(str(draft))
            try:
                with copy.backup("main", connection, "main") as steps:
                    steps.step()
                copy.execute("PRAGMA journal_mode = WAL").fetchall()
            finally:
                copy.close()
            if self._presence.is_same_file:  # only its log was removed, so the name is not taken by another file
                remove_companions(self.path)
                publish(draft, self.path)
            else:
                replace_database(self.path, draft, aside)
        finally:
            remove_database(draft)
        return aside if aside.exists() else None

    async def close(self) -> None:
        """Finish the queued work and close every connection."""
        if not self._backlog.close():
            return
        self._jobs.put(None)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._writer.join)
        await loop.run_in_executor(None, self._readers.close)
        for connection in self._opened:
            connection.close()

    # -- threads ----------------------------------------------------------------------------------------------------

    def _open(self, *, readonly: bool) -> apsw.Connection:
        connection = connect(self.path, readonly=readonly)
        self._opened.append(connection)
        return connection

    def _open_reader(self) -> apsw.Connection:
        try:
            return self._open(readonly=True)
        except apsw.Error as error:
            raise self._to_store_error(error) from error

    def _read(self, connection: apsw.Connection, fn: Callable[[Tx], T]) -> T:
        connection.execute("BEGIN")
        try:
            return fn(SqliteTx(connection, self.clock, self.ids))
        except apsw.Error as error:
            raise self._to_store_error(error) from error
        finally:
            if not connection.get_autocommit():
                connection.execute("ROLLBACK")

    def _write_loop(self) -> None:
        held: list[_Write | None] = []
        """Taken from the queue, but not part of the group being collected."""
        while True:
            job = held.pop() if held else self._jobs.get()
            if job is None:
                self._release_waiters()
                return
            if job.alone is not None:
                self._run_alone(job, job.alone)
                continue
            group = [job]
            while len(group) < GROUP_LIMIT:
                try:
                    following = self._jobs.get_nowait()
                except queue.Empty:
                    break
                if following is None or following.alone is not None:
                    held.append(following)
                    break
                group.append(following)
            emitted = self._commit_group(group)
            self._backlog.leave(len(group))
            self._unanswered = (group, emitted)
            if held or self._jobs.empty():
                self._release_waiters()

    def _run_alone(self, job: _Write, work: Callable[[apsw.Connection], Any]) -> None:
        self._release_waiters()
        try:
            job.value = work(self._connection)
        except BaseException as error:  # noqa: BLE001 - handed to its caller
            job.error = self._to_store_error(error)
        self._backlog.leave()
        deliver([job])

    def _release_waiters(self) -> None:
        """Resolve the futures of the last committed group and wake listeners."""
        group, emitted = self._unanswered
        self._unanswered = ([], False)
        deliver(group)
        if emitted:
            self._listeners.wake()

    def _commit_group(self, group: list[_Write]) -> bool:
        """Run the group's closures in one transaction and fill in their outcomes; returns whether events were emitted.

        Callers of the previous group are released when this one goes to disk, or takes long. Released earlier, they
        would compete with this thread for the interpreter, which is idle while the disk works.
        """
        connection = self._connection
        try:
            emitted = self._run_group(connection, group)
            self._release_waiters()
            if len(group) > 1 or group[0].error is None:
                self._require_presence()
                connection.execute("COMMIT")
        except BaseException as error:  # noqa: BLE001 - handed to every caller of the group
            translated = self._to_store_error(error)
            for job in group:
                job.error = job.error or translated
            self._release_waiters()
            self._roll_back_group(connection)
            return False
        return emitted

    def _require_presence(self) -> None:
        """Refuse to commit into a file that was removed or replaced.

        What is acknowledged between two checks is still in the open file, which `put_back` restores.
        """
        now = time.monotonic()
        if now < self._next_presence_check:
            return
        if problem := self._presence.problem():
            error = StoreRemoved(
                f"The database {self.path.name} {problem} while it was open; nothing was written.",
                recovery="The daemon puts it back and restarts; then repeat the call.",
            )
            self.removed(error)
            raise error
        self._next_presence_check = now + PRESENCE_CHECK_SECONDS

    def _run_group(self, connection: apsw.Connection, group: list[_Write]) -> bool:
        """Run the closures one after the other; if one fails, undo all and run each again in a savepoint of its own.

        Few closures fail, and two more statements for each would slow down all. To run twice does no harm, because
        closures change nothing but the transaction; PostgreSQL repeats them too.
        """
        connection.execute("BEGIN IMMEDIATE")
        emitted = False
        for job in group:
            try:
                emitted |= self._run_job(connection, job)
            except BaseException as error:
                if connection.get_autocommit():
                    raise
                connection.execute("ROLLBACK")
                if len(group) > 1:
                    return self._run_apart(connection, group)
                job.error = self._to_store_error(error)
        return emitted

    def _run_apart(self, connection: apsw.Connection, group: list[_Write]) -> bool:
        """Run each closure in a savepoint; one that fails is undone alone."""
        connection.execute("BEGIN IMMEDIATE")
        emitted = False
        for job in group:
            connection.execute("SAVEPOINT job")
            try:
                emitted |= self._run_job(connection, job)
            except BaseException as error:
                job.error = self._to_store_error(error)
                if connection.get_autocommit():
                    raise
                connection.execute("ROLLBACK TO job")
            connection.execute("RELEASE job")
        return emitted

    def _run_job(self, connection: apsw.Connection, job: _Write) -> bool:
        """Run one closure; returns whether it emitted events."""
        tx = SqliteTx(connection, self.clock, self.ids, self._release_waiters)
        job.value = job.fn(tx)
        return tx.flush()

    def _roll_back_group(self, connection: apsw.Connection) -> None:
        """Roll back the group. If even that fails, replace the connection: the writer must continue."""
        if connection.get_autocommit():
            return
        try:
            connection.execute("ROLLBACK")
        except apsw.Error:
            connection.close(True)
            self._opened.remove(connection)
            self._connection = self._open(readonly=False)

    def _to_store_error(self, error: BaseException) -> BaseException:
        """Translate a SQLite error and report damage, once; other errors are returned unchanged."""
        if not isinstance(error, apsw.Error):
            return error
        translated = to_store_error(error, self.path)
        if isinstance(translated, StoreCorrupt):
            self.report_damage(translated)
        return translated
