"""Restores a backup into either engine; the data it replaces is kept, or replacing it was allowed explicitly."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from holdfast.errors import BadInput, Conflict, NotFound, StoreCorrupt, StoreError
from holdfast.ids import random_id
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Clock, Tx
from holdfast.store.backup.backup import copy_pages
from holdfast.store.copying import (
    SEARCH_INDEXES,
    Progress,
    Table,
    acceptable_to_postgres,
    damaged_texts,
    no_progress,
    postgres_tables,
    quote,
    require_same_columns,
    rows_into_postgres,
    rows_of_sqlite,
    sqlite_counts,
    sqlite_tables,
)
from holdfast.store.files import beside, remove_database, replace_database, utc_stamp
from holdfast.store.high_water import mark_path
from holdfast.store.integrity import integrity_problems
from holdfast.store.migrations import Migration, load, pending
from holdfast.store.sqlite import (
    SqliteTx,
    applied_migrations,
    connect,
    migrate,
    system_clock,
    to_store_error,
)

if TYPE_CHECKING:
    from holdfast.store.postgres_server import Connection


HEAD = "event_head"
Amend = Callable[[Tx], None]
"""Changes the copy of a backup before it becomes the store."""


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """A finished restore."""

    engine: str
    rows: dict[str, int]
    migrated: list[int]
    """The migrations that the backup's schema was missing."""
    previous: Path | None
    """Where the previous database is kept."""
    damaged_texts: list[str]
    """Where the backup holds text that is not UTF-8. PostgreSQL has U+FFFD in its place; SQLite keeps it as it is."""


def check_backup(source: Path, known: list[Migration] | None = None, *, foreign: bool = False) -> list[Migration]:
    """Refuse a file that is not an intact Holdfast backup this program can read; returns its missing migrations.

    A foreign one must have exactly the tables, indexes and triggers that Holdfast creates: a trigger is a program.
    """
    if not source.is_file():
        raise NotFound(f"There is no file {source}.")
    connection = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        applied = applied_migrations(connection)
        if not applied:
            raise BadInput("backup", f"{source.name} is a SQLite file, but not a Holdfast backup")
        steps = pending(applied, load() if known is None else known)
        if foreign:  # first, because an integrity check already evaluates its schema
            _require_own_schema(source, connection, load() if known is None else known, steps)
        problems = integrity_problems(connection)
        if problems:
            raise StoreCorrupt(f"The backup {source.name} is damaged: {problems[0]}", recovery="Use another one.")
        return steps
    except apsw.NotADBError:
        raise BadInput(
            "backup",
            f"{source.name} is not a SQLite file",
            recovery="Name a file that `holdfast backup` wrote; unpack it first if it was compressed since.",
        ) from None
    except apsw.Error as error:
        raise to_store_error(error, source) from error
    finally:
        connection.close()


def restore_sqlite(
    source: Path,
    path: Path,
    progress: Progress = no_progress,
    *,
    clock: Clock = system_clock,
    known: list[Migration] | None = None,
    amend: Amend | None = None,
) -> RestoreReport:
    """Replace the database at `path` with the backup; the old one is kept under another name.

    A foreign backup is checked more strictly, and changed by `amend` before it becomes the store.
    """
    _require_disk_space(source, path.parent)
    steps = check_backup(source, known, foreign=amend is not None)
    _require_not_open(path)
    draft = beside(path, f".restoring-{os.getpid()}")
    try:
        rows = _copy_up_to_date(source, draft, steps, clock, progress, amend)
        damaged = _damaged_texts(draft)
        previous = beside(path, f".before-restore-{utc_stamp(clock())}")
        # Before the file is replaced: against the old store's mark the new one would look like a loss.
        mark_path(path.parent, "sqlite", "").unlink(missing_ok=True)
        replace_database(path, draft, previous)
        kept = previous if previous.exists() else None
        return RestoreReport("sqlite", rows, [step.number for step in steps], kept, damaged)
    finally:
        remove_database(draft)


def restore_postgres(
    source: Path,
    url: str,
    progress: Progress = no_progress,
    *,
    replace: bool = False,
    clock: Clock = system_clock,
    known: list[Migration] | None = None,
    amend: Amend | None = None,
) -> RestoreReport:
    """Load the backup into a PostgreSQL schema, in one transaction; one that holds data needs `replace`."""
    import psycopg

    from holdfast.store.postgres_server import Server, advisory_key, schema_of
    from holdfast.store.postgres_server import migrate as migrate_server

    _require_disk_space(source, Path(tempfile.gettempdir()))
    steps = check_backup(source, known, foreign=amend is not None)
    server = Server(url)
    replaced: list[str] = []
    with tempfile.TemporaryDirectory(prefix="holdfast-restore-") as folder:
        draft = Path(folder) / "backup.db"
        rows = _copy_up_to_date(source, draft, steps, clock, no_progress, amend)
        file = apsw.Connection(str(draft), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            with server.connect() as connection, connection.transaction():
                schema = schema_of(connection, server)
                # The migrations lock: no daemon can start on this schema during the restore.
                lock = advisory_key(schema, "migrations")
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock,))
                migrate_server(connection, schema, known)
                _load(file, connection, schema, progress, replaced, replace=replace, known=known)
        except psycopg.Error as error:
            raise server.refused(error) from error
        finally:
            file.close()
    return RestoreReport("postgres", rows, [step.number for step in steps], None, replaced)


def _require_not_open(path: Path) -> None:
    """Refuse while a daemon has the database open: it would keep writing to the file that was moved away."""
    if not path.exists() or path.stat().st_size == 0:
        return
    connection = apsw.Connection(str(path))
    try:
        # Leaving WAL mode needs exclusive access, and checkpoints the log.
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()
    except apsw.BusyError:
        raise Conflict("The database is in use.", recovery="Stop the daemon first: holdfast stop") from None
    except (apsw.CorruptError, apsw.NotADBError):
        return  # a damaged database is a good reason to restore; it is kept as it is
    finally:
        connection.close()


def _copy_up_to_date(
    source: Path, draft: Path, steps: list[Migration], clock: Clock, progress: Progress, amend: Amend | None
) -> dict[str, int]:
    """Copy the backup and migrate the copy to this program's schema; returns its row counts."""
    remove_database(draft)
    draft.touch(mode=0o600)
    original = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        expected = sqlite_counts(original)
        copy_pages(original, draft, progress)
    finally:
        original.close()
    connection = connect(draft)
    try:
        if sqlite_counts(connection) != expected:
            raise StoreError("The backup could not be copied completely; nothing was changed.")
        migrate(connection, clock, steps)
        _assign_new_epoch(connection)
        if amend is not None:
            _amend(connection, clock, amend)
        rows = sqlite_counts(connection)
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()
    finally:
        connection.close()
    return rows


def _require_disk_space(source: Path, folder: Path) -> None:
    """Refuse a backup that does not fit on the disk; a sparse file may claim any size."""
    size, free = source.stat().st_size if source.is_file() else 0, shutil.disk_usage(folder).free
    if size > free:
        raise StoreError(
            f"The backup {source.name} has {size} bytes, but {folder} has only {free} free; nothing was changed.",
            recovery="Free disk space, or use another backup.",
        )


def _require_own_schema(source: Path, file: apsw.Connection, known: list[Migration], behind: list[Migration]) -> None:
    new = apsw.Connection(":memory:")
    try:
        migrate(new, lambda: 0, [step for step in known if step not in behind])
        wanted, found = _schema_objects(new), _schema_objects(file)
    finally:
        new.close()
    if wanted != found:
        name = min(wanted.items() ^ found.items(), key=str)[0][1]
        raise BadInput(
            "backup",
            f"{source.name} was not made by this installation, and its {name!r} differs from what Holdfast creates",
            recovery="Make it again with `holdfast backup` where it came from.",
        )


def _schema_objects(connection: apsw.Connection) -> dict[tuple[str, str, str], str | None]:
    """Return every table, index, trigger and view with its SQL, except SQLite's internal tables."""
    rows = connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_schema"
        " WHERE name NOT IN ('sqlite_sequence', 'sqlite_stat1', 'sqlite_stat4')"
    )
    return {(str(kind), str(name), str(table)): None if sql is None else str(sql) for kind, name, table, sql in rows}


def _amend(connection: apsw.Connection, clock: Clock, amend: Amend) -> None:
    connection.execute("BEGIN IMMEDIATE")
    tx = SqliteTx(connection, clock, random_id)
    try:
        amend(tx)
        tx.flush()
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _assign_new_epoch(connection: apsw.Connection) -> None:
    """Give the store a new epoch: positions that daemons remember from the old one do not apply to it."""
    if "epoch" in {column for table in sqlite_tables(connection) for column in table.columns if table.name == HEAD}:
        connection.execute(f"UPDATE {HEAD} SET epoch = lower(hex(randomblob(16)))")  # noqa: S608


def _damaged_texts(path: Path) -> list[str]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return damaged_texts(connection)
    finally:
        connection.close()


def _load(
    file: apsw.Connection,
    connection: Connection,
    schema: str,
    progress: Progress,
    replaced: list[str],
    *,
    replace: bool,
    known: list[Migration] | None,
) -> None:
    tables = sqlite_tables(file)
    theirs = postgres_tables(connection, schema)
    for table in tables:
        require_same_columns(table, theirs.get(table.name))
    if not replace:
        _require_empty(connection, tables, load() if known is None else known)
    with _without_foreign_keys(connection, schema, tables):
        indexes = [quote(name) for name in SEARCH_INDEXES if name in theirs]  # filled again from the restored rows
        names = ", ".join([*(table.quoted for table in tables), *indexes])
        connection.execute(f"TRUNCATE {names}".encode())
        for done, table in enumerate(tables):
            progress(done / len(tables), table.name)
            rows_into_postgres(connection, table, acceptable_to_postgres(table, rows_of_sqlite(file, table), replaced))
    for table in tables:
        _continue_numbering(connection, table)
    loaded = {table.name: _count(connection, table) for table in tables}
    if loaded != sqlite_counts(file):
        raise StoreError("The backup could not be loaded completely; nothing was changed.")


def _require_empty(connection: Connection, tables: list[Table], known: list[Migration]) -> None:
    """Refuse a schema that holds any row other than those that the migrations insert."""
    new = apsw.Connection(":memory:")
    try:
        migrate(new, lambda: 0, known)
        fresh = sqlite_counts(new)
    finally:
        new.close()
    head = connection.execute("SELECT seq FROM event_head WHERE id = 1").fetchone()
    filled = [table.name for table in tables if _count(connection, table) > fresh.get(table.name, 0)]
    if filled or (head is not None and head["seq"] > 0):
        raise Conflict(
            f"The PostgreSQL schema already holds data ({', '.join(filled) or 'events'}).",
            recovery="Choose an empty schema, or allow replacing it (--replace).",
        )


@contextmanager
def _without_foreign_keys(connection: Connection, schema: str, tables: list[Table]) -> Iterator[None]:
    """Drop the foreign keys and add them back, checked, so that the order of the tables does not matter."""
    keys = connection.execute(
        "SELECT r.relname AS tab, c.conname AS name, pg_get_constraintdef(c.oid) AS definition"
        " FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid JOIN pg_namespace n ON n.oid = r.relnamespace"
        " WHERE n.nspname = %s AND c.contype = 'f' AND r.relname = ANY(%s)",
        (schema, [table.name for table in tables]),
    ).fetchall()
    for key in keys:
        connection.execute(f"ALTER TABLE {quote(key['tab'])} DROP CONSTRAINT {quote(key['name'])}".encode())
    yield
    for key in keys:
        add = f"ALTER TABLE {quote(key['tab'])} ADD CONSTRAINT {quote(key['name'])} {key['definition']}"
        connection.execute(add.encode())


def _continue_numbering(connection: Connection, table: Table) -> None:
    identity = connection.execute(
        "SELECT attname AS name FROM pg_attribute WHERE attrelid = %s::regclass AND attidentity <> ''",
        (table.quoted,),
    ).fetchall()
    for row in identity:
        column = quote(row["name"])
        set_next = (
            f"SELECT setval(pg_get_serial_sequence(%s, %s), coalesce(max({column}), 0) + 1, false)"  # noqa: S608
            f" FROM {table.quoted}"
        )
        connection.execute(set_next.encode(), (table.quoted, row["name"]))


def _count(connection: Connection, table: Table) -> int:
    row = connection.execute(f"SELECT count(*) AS n FROM {table.quoted}".encode()).fetchone()  # noqa: S608
    return int(row["n"]) if row else 0
