"""Checks for damage to a SQLite database, cheap enough for every start."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from pathlib import Path

import apsw

from holdfast.errors import StoreCorrupt
from holdfast.files import write_private
from holdfast.lazy_dataclass import dataclass
from holdfast.process.low_priority import at_low_priority
from holdfast.store import Store
from holdfast.store.files import beside
from holdfast.store.integrity import integrity_problems
from holdfast.store.salvage.log_repair import FRAME_HEADER, WAL_HEADER, header_is_valid
from holdfast.store.sqlite import (
    BUSY_TIMEOUT_MS,
    SALVAGE_ON_RESTART,
    SqliteStore,
    applied_migrations,
    to_store_error,
)

MAGIC = b"SQLite format 3\0"
CREATED = "created"
"""Marker file, written once a store has been opened in the data directory. Only without it is an empty or missing
database a new one: a file system check may leave an empty file, which must not pass for a fresh start."""

CORRUPT = "corrupt"
"""Marker file, written into the data directory when damage is found; the next start then checks every page."""


def check_at_start(path: Path) -> StoreCorrupt | None:
    """Check the header, schema and write-ahead log of the database. Reads little, writes nothing."""
    log = beside(path, "-wal")
    logged = log.stat().st_size if log.exists() else 0
    if not path.exists() or path.stat().st_size == 0:
        state = "is empty" if path.exists() else "is missing"
        if (path.parent / CREATED).exists() or logged:
            return StoreCorrupt(f"The database {path.name} {state}, though there was a store here.")
        return None
    problem = _header_problem(path, logged) or (_log_header_problem(path, log) if logged else None)
    return StoreCorrupt(f"The database {path.name} is damaged: {problem}.") if problem else _unreadable(path, log)


def check_every_page(path: Path) -> StoreCorrupt | None:
    """Run the full check, for a database that is suspected to be damaged."""
    connection = open_for_inspection(path)
    try:
        problems = integrity_problems(connection)
    except apsw.Error as error:
        problems = [str(error)]
    finally:
        connection.close()
    problems = problems or _schema_problems(path)
    return StoreCorrupt(f"The database {path.name} is damaged: {problems[0]}.") if problems else None


async def quick_check(store: Store) -> StoreCorrupt | None:
    """Check a running store in the background; damage is also reported to the store's `corrupt` callback.

    It reads the whole file. It steps back for every other process meanwhile, and the daemon can stop in the middle.
    """
    if not isinstance(store, SqliteStore):
        return None
    try:
        problems = await _quick_problems(store.path)
    except (apsw.CorruptError, apsw.NotADBError) as error:
        problems = [str(error)]
    except apsw.Error as error:
        raise to_store_error(error, store.path) from error
    if not problems:
        return None
    damage = StoreCorrupt(f"The database {store.path.name} is damaged: {problems[0]}.", recovery=SALVAGE_ON_RESTART)
    store.report_damage(damage)
    return damage


async def _quick_problems(path: Path) -> list[str]:
    connection = open_for_inspection(path)
    try:
        found = await at_low_priority(partial(integrity_problems, connection, quick=True), connection.interrupt)
    finally:
        connection.close()
    return found or await asyncio.to_thread(_schema_problems, path)


def _schema_problems(path: Path) -> list[str]:
    from holdfast.store.salvage.own_schema import schema_problem

    connection = open_for_inspection(path)
    try:
        problem = schema_problem(connection)
    except apsw.Error as error:
        problem = str(error)
    finally:
        connection.close()
    return [problem] if problem else []


def mark(home: Path, name: str, text: str) -> None:
    """Write a marker file for the next start; it is on disk when this returns."""
    write_private(home / name, f"{text}\n")


def open_for_inspection(path: Path) -> apsw.Connection:
    """Open a connection that changes neither the database nor its log."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.execute("PRAGMA query_only = ON")
    return connection


def page_size(header: bytes) -> int:
    """Return the page size in a database header; 0 if it is invalid."""
    if len(header) < 100 or not header.startswith(MAGIC):
        return 0
    size = int.from_bytes(header[16:18], "big")
    size = 65536 if size == 1 else size
    return size if size >= 512 and size & (size - 1) == 0 else 0


def _header_problem(path: Path, logged: int) -> str | None:
    with path.open("rb") as file:
        header = file.read(100)
    size = page_size(header)
    if size == 0:
        return "its header is not that of a SQLite database"
    pages = int.from_bytes(header[28:32], "big")
    # While there is a log, a checkpoint may have been interrupted, and the log completes the file.
    if not logged and header[24:28] == header[92:96] and path.stat().st_size < pages * size:
        return f"it was cut off after {path.stat().st_size} of {pages * size} bytes"
    return None


def _log_header_problem(path: Path, log: Path) -> str | None:
    with path.open("rb") as file:
        size = page_size(file.read(100))
    with log.open("rb") as file:
        header = file.read(WAL_HEADER)
        rest = file.read(FRAME_HEADER)
    if len(header) < WAL_HEADER or (not any(header) and not any(rest)):
        return None  # nothing was ever synced into it
    return None if header_is_valid(header, size) else "the header of its write-ahead log is not readable"


def _unreadable(path: Path, log: Path) -> StoreCorrupt | None:
    connection = open_for_inspection(path)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        emptied = not applied_migrations(connection) and (path.parent / CREATED).exists()
        valid = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0]
        cut = unread_commits(log, max(valid, 0))
    except (apsw.CorruptError, apsw.NotADBError) as error:
        return StoreCorrupt(f"The database {path.name} is damaged: {error}.")
    finally:
        connection.close()
    if emptied:
        return StoreCorrupt(f"The database {path.name} holds no tables, though there was a store here.")
    if cut is not None:
        return StoreCorrupt(
            f"The write-ahead log of {path.name} is damaged at frame {cut.frame}, with about {cut.commits} committed"
            " transactions after it."
        )
    return None


@dataclass(frozen=True, slots=True)
class CutLog:
    """A write-ahead log that is damaged in the middle."""

    frame: int
    commits: int


def unread_commits(log: Path, valid: int) -> CutLog | None:
    """Find acknowledged transactions in the log after its first unreadable frame.

    SQLite reads a log up to the first frame that fails its checksum and silently drops the rest. That is right for one
    transaction, which a crash may have interrupted; but the next one is only written after the previous one was synced,
    so two commits after the last valid frame mean that the log was damaged later.
    """
    if not log.exists() or log.stat().st_size < WAL_HEADER:
        return None
    commits = 0
    with log.open("rb") as file:
        header = file.read(WAL_HEADER)
        size, salts = int.from_bytes(header[8:12], "big"), header[16:24]
        if size < 512:
            return None
        file.seek(WAL_HEADER + valid * (FRAME_HEADER + size))
        while len(frame := file.read(FRAME_HEADER)) == FRAME_HEADER:
            if frame[8:16] == salts and any(frame[4:8]):
                commits += 1
            file.seek(size, os.SEEK_CUR)
    return CutLog(valid + 1, commits) if commits >= 2 else None
