"""Takes backups: always one SQLite file, taken while the store is in use, restorable into either engine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from holdfast.errors import Conflict, StoreCorrupt, StoreError
from holdfast.ids import random_id
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Clock, Store
from holdfast.store.backup import own_backups
from holdfast.store.copying import (
    Progress,
    damaged_texts,
    empty_like,
    no_progress,
    postgres_into_sqlite,
    sqlite_counts,
)
from holdfast.store.files import beside, publish, remove_database, utc_stamp
from holdfast.store.migrations import Migration, load
from holdfast.store.sqlite import (
    SqliteStore,
    SqliteTx,
    applied_migrations,
    connect,
    system_clock,
    to_store_error,
)
from holdfast.store.verify import DATABASE, Check, VerifyReport, check_engine, run_checks

if TYPE_CHECKING:
    from holdfast.store.postgres_server import Connection, Server

PAGES_AT_ONCE = 1000
KEPT_BEFORE_MIGRATIONS = 5


@dataclass(frozen=True, slots=True)
class BackupReport:
    """A finished backup."""

    path: Path
    engine: str
    """The engine it was taken from."""
    schema: int
    """The number of the newest migration in it."""
    rows: dict[str, int]
    size: int
    """Bytes."""
    damaged_texts: list[str]
    """Where it holds text that is not UTF-8, as the store does; such text is copied byte for byte."""
    verified: VerifyReport
    """What the checks found in the finished file."""


@dataclass(frozen=True, slots=True)
class Verification:
    """How a finished copy is verified, and the callback that decides whether to keep it."""

    checks: Mapping[str, Check] = field(default_factory=lambda: {DATABASE: check_engine})
    acknowledged: Collection[str] = ()
    accept: Callable[[VerifyReport], None] = lambda report: None
    note: Callable[[Path], None] = lambda finished: None
    """Called with the finished file before it gets its final name."""


NO_VERIFICATION = Verification()


async def backup(
    store: Store,
    target: Path,
    progress: Progress = no_progress,
    verification: Verification = NO_VERIFICATION,
    *,
    replace: bool = False,
) -> BackupReport:
    """Copy the whole store into one file while it is in use; `progress` is called from another thread.

    The copy is verified before it gets its final name.
    """
    if isinstance(store, SqliteStore):
        return await asyncio.to_thread(_backup_sqlite, store.path, target, progress, verification, replace)
    from holdfast.store.postgres import PostgresStore

    if isinstance(store, PostgresStore):
        return await asyncio.to_thread(_backup_postgres, store.server, target, progress, verification, replace)
    raise StoreError(f"Backups are not implemented for the engine {store.engine}.")


def _backup_sqlite(
    source: Path, target: Path, progress: Progress, verification: Verification, replace: bool
) -> BackupReport:
    connection = connect(source, readonly=True)
    try:
        return _from_sqlite(connection, target, progress, verification, replace=replace)
    except apsw.Error as error:
        raise to_store_error(error, source) from error
    finally:
        connection.close()


def _backup_postgres(
    server: Server, target: Path, progress: Progress, verification: Verification, replace: bool
) -> BackupReport:
    import psycopg

    from holdfast.store.postgres_server import schema_of

    with server.connect() as connection:
        schema = schema_of(connection, server)
        try:
            return _from_postgres(connection, schema, target, None, progress, verification, replace=replace)
        except psycopg.Error as error:
            raise server.refused(error) from error


def backup_before_migration(home: Path, clock: Clock) -> Callable[[apsw.Connection, Migration], None]:
    """Return the `before_migration` callback for SqliteStore.open, which takes a backup."""

    def take(connection: apsw.Connection, step: Migration) -> None:
        verification = Verification(note=partial(own_backups.note, home))
        _from_sqlite(connection, _pre_migration_path(home, step, clock), no_progress, verification)
        _prune(home / "backups")

    return take


def postgres_backup_before_migration(
    home: Path, clock: Clock, known: list[Migration] | None
) -> Callable[[Connection, Migration], None]:
    """Return the `before_migration` callback for PostgresStore.open, which takes a backup."""

    def take(connection: Connection, step: Migration) -> None:
        row = connection.execute("SELECT current_schema() AS name").fetchone()
        if row is None:
            raise StoreError("The database server did not name its schema.")
        verification = Verification(note=partial(own_backups.note, home))
        _from_postgres(
            connection, str(row["name"]), _pre_migration_path(home, step, clock), known, no_progress, verification
        )
        _prune(home / "backups")

    return take


def _pre_migration_path(home: Path, step: Migration, clock: Clock) -> Path:
    folder = home / "backups"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"before-{step.number:04}-{utc_stamp(clock())}.db"


def _prune(folder: Path) -> None:
    newest = sorted(folder.glob("before-*.db"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for path in newest[KEPT_BEFORE_MIGRATIONS:]:
        path.unlink()


def _from_sqlite(
    source: apsw.Connection,
    target: Path,
    progress: Progress,
    verification: Verification,
    *,
    replace: bool = False,
) -> BackupReport:
    with _draft(target, replace=replace) as draft:
        # The open read holds one snapshot for all steps; without it every concurrent write would restart the copy.
        source.execute("BEGIN")
        try:
            rows = sqlite_counts(source)
            copy_pages(source, draft, progress)
        finally:
            source.execute("ROLLBACK")
        return _finish(draft, target, "sqlite", rows, verification)


def _from_postgres(
    source: Connection,
    schema: str,
    target: Path,
    known: list[Migration] | None,
    progress: Progress,
    verification: Verification,
    *,
    replace: bool = False,
) -> BackupReport:
    from holdfast.store.postgres_server import applied_migrations as applied_in_postgres

    with _draft(target, replace=replace) as draft, source.transaction():
        source.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        present = {number for number, _, _ in applied_in_postgres(source, schema)}
        if not present:
            raise StoreError("There is no Holdfast store in this schema of the database.")
        connection = connect(draft)
        try:
            steps = load() if known is None else known
            empty_like(connection, [step for step in steps if step.number in present])
            rows = postgres_into_sqlite(source, schema, connection, progress)
        finally:
            connection.close()
        return _finish(draft, target, "postgres", rows, verification)


def copy_pages(source: apsw.Connection, target: Path, progress: Progress = no_progress) -> None:
    """Copy a SQLite database page by page into the file `target`."""
    copy = apsw.Connection(str(target))
    try:
        with copy.backup("main", source, "main") as steps:
            while not steps.done:
                steps.step(PAGES_AT_ONCE)
                progress(1 - steps.remaining / max(steps.page_count, 1), "pages")
    finally:
        copy.close()


@contextmanager
def _draft(target: Path, *, replace: bool) -> Iterator[Path]:
    """Create a private draft beside the target; it is removed unless it was finished."""
    if target.exists() and not replace:
        raise Conflict(f"{target} already exists.", recovery="Choose another name, or allow replacing it (--replace).")
    if not target.parent.is_dir():
        raise StoreError(f"The folder {target.parent} does not exist.", recovery="Create it first.")
    draft = beside(target, f".partial-{os.getpid()}")
    remove_database(draft)
    draft.touch(mode=0o600)
    try:
        yield draft
    finally:
        remove_database(draft)


def _finish(draft: Path, target: Path, engine: str, rows: dict[str, int], verification: Verification) -> BackupReport:
    """Check the copy and give it its final name."""
    connection = apsw.Connection(str(draft))
    try:
        # One file without a log beside it, which can also be read from a read-only directory.
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()
        copied = sqlite_counts(connection)
        if copied != rows:
            wrong = sorted(name for name in rows if copied.get(name) != rows[name])
            raise StoreError(f"The backup is incomplete and was discarded: {', '.join(wrong)}.")
        schema = max((number for number, _, _ in applied_migrations(connection)), default=0)
        texts = damaged_texts(connection)
        verified = run_checks(
            SqliteTx(connection, system_clock, random_id), verification.checks, no_progress, verification.acknowledged
        )
    finally:
        connection.close()
    damaged = next((problem for problem in verified.problems if problem.subject == DATABASE), None)
    if damaged is not None:
        raise StoreCorrupt(f"The backup would be damaged: {damaged.text}")
    verification.accept(verified)
    verification.note(draft)
    publish(draft, target)
    return BackupReport(target, engine, schema, rows, target.stat().st_size, texts, verified)
