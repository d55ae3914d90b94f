"""Erases deleted rows from the store's files.

A deleted row stays in the file until its space is reused: on free pages, in the log, and in the search index, which
only marks a text as deleted (FTS5's `secure-delete` has no effect on an index without a copy of the text).
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from holdfast.store import Store
from holdfast.store.copying import SEARCH_INDEXES, Progress
from holdfast.store.files import beside
from holdfast.store.sqlite import SqliteStore, connect

if TYPE_CHECKING:
    from holdfast.store.postgres import PostgresStore
    from holdfast.store.postgres_server import Connection

READERS_WAIT_S = 60.0
"""How long to wait for readers of an older snapshot."""
POLL_S, MAX_PAUSE_S = 0.2, 5.0
MAX_IN_MEMORY_BYTES = 64 * 1024 * 1024
"""Largest database that is vacuumed in memory; a larger one needs a temporary file."""
SPARE_BYTES = 16 * 1024 * 1024
STATISTICS = "pg_catalog.pg_statistic"
LOCK_MS = 5_000
"""How long to wait for a table's lock before other users get their turn again."""


@asynccontextmanager
async def overwriting(store: Store) -> AsyncIterator[None]:
    """Overwrite rows deleted inside the block with zeros: a safeguard if the disk has no room for a VACUUM."""
    if not isinstance(store, SqliteStore):
        yield
        return
    await store.alone(lambda connection: connection.execute("PRAGMA secure_delete = ON").fetchall())
    try:
        yield
    finally:
        await store.alone(lambda connection: connection.execute("PRAGMA secure_delete = FAST").fetchall())


async def erase_deleted(store: Store, progress: Progress) -> list[str]:
    """Rewrite the store's files without deleted rows; returns what could not be erased, and why."""
    if isinstance(store, SqliteStore):
        return await _erase_sqlite(store, progress)
    from holdfast.store.postgres import PostgresStore

    if isinstance(store, PostgresStore):
        return await _erase_postgres(store, progress)
    return [f"Erasing is not implemented for the engine {store.engine}."]


# -- SQLite -----------------------------------------------------------------------------------------------------------


async def _erase_sqlite(store: SqliteStore, progress: Progress) -> list[str]:
    progress(0.0, "search index")
    await store.alone(_drop_from_indexes)
    work = asyncio.ensure_future(store.alone(_vacuum))
    log, size = beside(store.path, "-wal"), max(store.path.stat().st_size, 1)
    before = _size(log)
    while not (await asyncio.wait([work], timeout=POLL_S))[0]:
        share = min(1.0, max(0, _size(log) - before) / size)
        progress(0.1 + 0.8 * share, "rewriting the database")
    remaining = [trouble] if (trouble := await work) else []
    progress(0.9, "emptying the log")
    deadline = time.monotonic() + READERS_WAIT_S
    while not await asyncio.to_thread(_empty_log, store.path):
        if time.monotonic() > deadline:
            remaining.append("A long-running reader kept the database's log (holdfast.db-wal) from being emptied.")
            break
        await asyncio.sleep(POLL_S)
    return remaining


def _drop_from_indexes(connection: apsw.Connection) -> None:
    for name in SEARCH_INDEXES:
        connection.execute(f"INSERT INTO {name} ({name}) VALUES ('optimize')")  # noqa: S608 - our own names


def _vacuum(connection: apsw.Connection) -> str | None:
    """Run VACUUM; returns the reason if the disk has no room for it."""
    pages, free, page_size = (
        int(str(connection.execute(f"PRAGMA {name}").fetchall()[0][0]))
        for name in ("page_count", "freelist_count", "page_size")
    )
    size = (pages - free) * page_size
    trouble = _missing_room(Path(connection.db_filename("main")).parent, size)
    if trouble is not None:
        return trouble
    connection.execute(f"PRAGMA temp_store = {'MEMORY' if size <= MAX_IN_MEMORY_BYTES else 'FILE'}")
    try:
        connection.execute("VACUUM")
    except apsw.FullError:
        return _no_room_message(2 * size)
    finally:
        connection.execute("PRAGMA temp_store = MEMORY")
    return None


def _missing_room(home: Path, size: int) -> str | None:
    """Return the reason if there is no room for the log of a VACUUM of this size and its temporary file."""
    needed = {home: size + SPARE_BYTES}
    if size > MAX_IN_MEMORY_BYTES:
        temporary = _temporary_folder()
        if temporary.stat().st_dev == home.stat().st_dev:
            needed[home] += size
        else:
            needed[temporary] = size + SPARE_BYTES
    for folder, wanted in needed.items():
        if shutil.disk_usage(folder).free < wanted:
            return _no_room_message(wanted)
    return None


def _no_room_message(size: int) -> str:
    return (
        "The disk has no room to rewrite the database. What was removed was overwritten in place, but earlier versions"
        f" of it may remain in unused parts of the file until {size / 1e6:.0f} MB are free."
    )


def _temporary_folder() -> Path:
    """Return where SQLite puts its temporary files."""
    named = [os.environ.get("SQLITE_TMPDIR"), os.environ.get("TMPDIR"), "/var/tmp", "/usr/tmp", "/tmp"]  # noqa: S108
    return next((Path(name) for name in named if name and os.access(name, os.W_OK | os.X_OK)), Path.cwd())


def _empty_log(path: Path) -> bool:
    """Checkpoint the log and truncate it; returns False if a reader still needs it."""
    connection = connect(path)
    try:
        connection.set_busy_timeout(500)
        return not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]
    except apsw.BusyError:
        return False
    finally:
        connection.close()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


# -- PostgreSQL -------------------------------------------------------------------------------------------------------


async def _erase_postgres(store: PostgresStore, progress: Progress) -> list[str]:
    """Rewrite every table, and the server's statistics on them, which contain values too."""
    import psycopg

    left: list[str] = []
    connection = await asyncio.to_thread(store.server.connect)
    try:
        names = await asyncio.to_thread(_tables, connection, store.schema)
        deadline = time.monotonic() + READERS_WAIT_S
        for place, name in enumerate(names):
            progress(place / (len(names) + 1), name.rpartition(".")[2])
            if why := await _vacuum_table(connection, name, deadline):
                left.append(f"The table {name} could not be rewritten: {why}.")
            else:
                await asyncio.to_thread(_drop_statistics_if_empty, connection, name)
        # Only the database's owner may; for other users the server cleans up in its own time.
        await _vacuum_table(connection, STATISTICS, deadline)
    except psycopg.Error as error:
        raise store.server.refused(error) from error
    finally:
        connection.close()
    return left


def _tables(connection: Connection, schema: str) -> list[str]:
    connection.execute(f"SET lock_timeout = {LOCK_MS}".encode())
    rows = connection.execute(
        "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) AS name FROM pg_tables"
        " WHERE schemaname = %s ORDER BY tablename",
        (schema,),
    )
    return [str(row["name"]) for row in rows]


def _drop_statistics_if_empty(connection: Connection, name: str) -> None:
    """Drop the statistics of a table that is now empty: ANALYZE leaves those unchanged."""
    from psycopg import errors

    if connection.execute(f"SELECT 1 FROM {name} LIMIT 1".encode()).fetchone() is not None:  # noqa: S608 - our names
        return
    try:
        connection.execute(f"DELETE FROM {STATISTICS} WHERE starelid = %s::regclass".encode(), (name,))  # noqa: S608
    except errors.InsufficientPrivilege:
        columns = connection.execute(
            "SELECT quote_ident(a.attname) AS name FROM pg_attribute a WHERE a.attrelid = %s::regclass"
            " AND a.atttypid = 'text'::regtype AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''",
            (name,),
        ).fetchall()
        for column in columns:
            # A table's owner may not delete its statistics, but changing a column's type drops them.
            with suppress(errors.FeatureNotSupported, errors.LockNotAvailable):  # a generated column depends on it
                connection.execute(f"ALTER TABLE {name} ALTER COLUMN {column['name']} TYPE text".encode())


async def _vacuum_table(connection: Connection, name: str, deadline: float) -> str | None:
    """Run VACUUM FULL; returns the reason if deleted rows are still in the table's file."""
    from psycopg import errors

    pause = POLL_S
    while True:
        try:
            dead, refused = await asyncio.to_thread(_vacuum_table_once, connection, name)
            trouble = "a transaction on the server still sees the deleted rows"
        except errors.LockNotAvailable:
            dead, refused, trouble = 1, None, "it is in use"
        if refused is not None:
            return refused
        if not dead:
            return None
        if time.monotonic() > deadline:
            return trouble
        await asyncio.sleep(pause)
        pause = min(2 * pause, MAX_PAUSE_S)


def _vacuum_table_once(connection: Connection, name: str) -> tuple[int, str | None]:
    """Return how many deleted rows are still visible to a transaction, and why the server refused, if it did."""
    dead: list[int] = []
    refused: list[str] = []

    def on_notice(notice: object) -> None:
        severity, detail = getattr(notice, "severity_nonlocalized", None), getattr(notice, "message_detail", None)
        if severity == "WARNING":
            refused.append(str(getattr(notice, "message_primary", "the server refused")))
        elif severity == "INFO" and detail and (number := re.match(r"\d+", str(detail))):
            dead.append(int(number[0]))

    connection.add_notice_handler(on_notice)
    try:
        analyze = "" if name == STATISTICS else ", ANALYZE"
        connection.execute(f"VACUUM (FULL, VERBOSE{analyze}) {name}".encode())
    finally:
        connection.remove_notice_handler(on_notice)
    return sum(dead), refused[0] if refused else None
