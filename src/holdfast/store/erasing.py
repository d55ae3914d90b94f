"""Erasing: what was deleted from the store is also gone from its files.

A deleted row stays in the file until its place is used again: on pages that are free, in the log, and in the search
index, which only notes that a text is gone: FTS5's `secure-delete` does nothing in an index without a copy of the text.
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
from holdfast.store.copying import Progress
from holdfast.store.files import beside
from holdfast.store.sqlite import SqliteStore, connect

if TYPE_CHECKING:
    from holdfast.store.postgres import PostgresStore
    from holdfast.store.postgres_server import Connection

PATIENCE_S = 60.0
"""How long readers that still look at the past are waited for."""
LOOK_S, LONGEST_PAUSE_S = 0.2, 5.0
IN_MEMORY = 64 * 1024 * 1024
"""Bytes of a database that is put together anew in memory; a larger one needs a temporary file."""
SPARE = 16 * 1024 * 1024
INDEXES = ("thoughts_fts", "history_fts")
STATISTICS = "pg_catalog.pg_statistic"
LOCK_MS = 5_000
"""How long a table's users are waited for before others get their turn again."""


@asynccontextmanager
async def overwriting(store: Store) -> AsyncIterator[None]:
    """Have all that is deleted meanwhile overwritten with zeros: what erasing does without where there is no room."""
    if not isinstance(store, SqliteStore):
        yield
        return
    await store.alone(lambda connection: connection.execute("PRAGMA secure_delete = ON").fetchall())
    try:
        yield
    finally:
        await store.alone(lambda connection: connection.execute("PRAGMA secure_delete = FAST").fetchall())


async def erase_deleted(store: Store, progress: Progress) -> list[str]:
    """Write the store's files anew without what was deleted; says what could not be done, and why."""
    if isinstance(store, SqliteStore):
        return await _erase_sqlite(store, progress)
    from holdfast.store.postgres import PostgresStore

    if isinstance(store, PostgresStore):
        return await _erase_postgres(store, progress)
    return [f"No erasing is known for the engine {store.engine}."]


# -- SQLite -----------------------------------------------------------------------------------------------------------


async def _erase_sqlite(store: SqliteStore, progress: Progress) -> list[str]:
    progress(0.0, "search index")
    await store.alone(_drop_from_indexes)
    work = asyncio.ensure_future(store.alone(_write_anew))
    log, size = beside(store.path, "-wal"), max(store.path.stat().st_size, 1)
    before = _size(log)
    while not (await asyncio.wait([work], timeout=LOOK_S))[0]:
        share = min(1.0, max(0, _size(log) - before) / size)
        progress(0.1 + 0.8 * share, "writing the database anew")
    left = [trouble] if (trouble := await work) else []
    progress(0.9, "emptying the log")
    deadline = time.monotonic() + PATIENCE_S
    while not await asyncio.to_thread(_empty_log, store.path):
        if time.monotonic() > deadline:
            left.append(
                "Something has been reading the database for long, so its log (holdfast.db-wal) could not be emptied."
            )
            break
        await asyncio.sleep(LOOK_S)
    return left


def _drop_from_indexes(connection: apsw.Connection) -> None:
    for name in INDEXES:
        connection.execute(f"INSERT INTO {name} ({name}) VALUES ('optimize')")  # noqa: S608 - our own names


def _write_anew(connection: apsw.Connection) -> str | None:
    """VACUUM; says why not where the disk has no room for it."""
    pages, free, page_size = (
        int(str(connection.execute(f"PRAGMA {name}").fetchall()[0][0]))
        for name in ("page_count", "freelist_count", "page_size")
    )
    size = (pages - free) * page_size
    short = _missing_room(Path(connection.db_filename("main")).parent, size)
    if short is not None:
        return short
    connection.execute(f"PRAGMA temp_store = {'MEMORY' if size <= IN_MEMORY else 'FILE'}")
    try:
        connection.execute("VACUUM")
    except apsw.FullError:
        return _no_room(2 * size)
    finally:
        connection.execute("PRAGMA temp_store = MEMORY")
    return None


def _missing_room(home: Path, size: int) -> str | None:
    """Whether there is room for the log of a database of this size, and for a copy of it in a temporary file."""
    needed = {home: size + SPARE}
    if size > IN_MEMORY:
        temporary = _temporary_folder()
        if temporary.stat().st_dev == home.stat().st_dev:
            needed[home] += size
        else:
            needed[temporary] = size + SPARE
    for folder, wanted in needed.items():
        if shutil.disk_usage(folder).free < wanted:
            return _no_room(wanted)
    return None


def _no_room(size: int) -> str:
    return (
        "The disk has no room to write the database anew. What was removed was overwritten in its place, but copies"
        f" from earlier changes of it may remain in unused places of the file until {size / 1e6:.0f} MB are free."
    )


def _temporary_folder() -> Path:
    """Where SQLite puts its temporary files."""
    named = [os.environ.get("SQLITE_TMPDIR"), os.environ.get("TMPDIR"), "/var/tmp", "/usr/tmp", "/tmp"]  # noqa: S108
    return next((Path(name) for name in named if name and os.access(name, os.W_OK | os.X_OK)), Path.cwd())


def _empty_log(path: Path) -> bool:
    """Copy the log into the database and cut it to nothing; False where a reader holds on to it."""
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
    """Write every table anew, and the server's statistics of them, which hold values too."""
    import psycopg

    left: list[str] = []
    connection = await asyncio.to_thread(store.server.connect)
    try:
        names = await asyncio.to_thread(_tables, connection, store.schema)
        deadline = time.monotonic() + PATIENCE_S
        for place, name in enumerate(names):
            progress(place / (len(names) + 1), name.rpartition(".")[2])
            if why := await _write_table_anew(connection, name, deadline):
                left.append(f"The table {name} could not be written anew: {why}.")
            else:
                await asyncio.to_thread(_drop_statistics_of_nothing, connection, name)
        # Only the database's owner may; everybody else's are left to the server's own housekeeping.
        await _write_table_anew(connection, STATISTICS, deadline)
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


def _drop_statistics_of_nothing(connection: Connection, name: str) -> None:
    """Drop the statistics of a table that is empty now: ANALYZE leaves those as they were."""
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
            # Who owns a table may not touch its statistics, but a column that changes its type loses them.
            with suppress(errors.FeatureNotSupported, errors.LockNotAvailable):  # a generated column depends on it
                connection.execute(f"ALTER TABLE {name} ALTER COLUMN {column['name']} TYPE text".encode())


async def _write_table_anew(connection: Connection, name: str, deadline: float) -> str | None:
    """VACUUM FULL; says why rows that were deleted are still in the table's file."""
    from psycopg import errors

    pause = LOOK_S
    while True:
        try:
            dead, refused = await asyncio.to_thread(_vacuumed, connection, name)
            trouble = "a transaction on the server still sees what was deleted"
        except errors.LockNotAvailable:
            dead, refused, trouble = 1, None, "it is in use"
        if refused is not None:
            return refused
        if not dead:
            return None
        if time.monotonic() > deadline:
            return trouble
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)


def _vacuumed(connection: Connection, name: str) -> tuple[int, str | None]:
    """How many deleted rows had to stay for somebody who still sees them; and why the server did nothing at all."""
    dead: list[int] = []
    refused: list[str] = []

    def heed(told: object) -> None:
        severity, detail = getattr(told, "severity_nonlocalized", None), getattr(told, "message_detail", None)
        if severity == "WARNING":
            refused.append(str(getattr(told, "message_primary", "the server refused")))
        elif severity == "INFO" and detail and (number := re.match(r"\d+", str(detail))):
            dead.append(int(number[0]))

    connection.add_notice_handler(heed)
    try:
        analyze = "" if name == STATISTICS else ", ANALYZE"
        connection.execute(f"VACUUM (FULL, VERBOSE{analyze}) {name}".encode())
    finally:
        connection.remove_notice_handler(heed)
    return sum(dead), refused[0] if refused else None
