"""The store opened as a daemon opens it: damage looked for, salvage and backups done, all of it told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import apsw

from holdfast.errors import BadInput, StoreCorrupt, StoreError
from holdfast.store import Clock, Ids, Store
from holdfast.store.damage import CORRUPT, CREATED, check_at_start, check_every_page, mark
from holdfast.store.migrations import Migration
from holdfast.store.sqlite import SqliteStore, in_our_words, random_id, system_clock

DATABASE = "holdfast.db"
POSTGRES_SCHEMES = ("postgresql://", "postgres://")


async def open_store(
    home: Path,
    url: str | None = None,
    *,
    clock: Clock = system_clock,
    clock_offset: Callable[[], int] | None = None,
    ids: Ids = random_id,
    known: list[Migration] | None = None,
    on_corrupt: Callable[[StoreCorrupt], None] | None = None,
) -> tuple[Store, list[str]]:
    """Open the store of the data directory `home`, or the PostgreSQL at `url`; returns it and what users must be told.

    `clock` is SQLite's, `clock_offset` is added to the PostgreSQL server's own. `on_corrupt` is called, from the thread
    that noticed, after damage was met at run time and noted for the next start.
    """
    if url is None:
        try:
            return await asyncio.to_thread(_open_sqlite, home, clock, ids, known, on_corrupt)
        except apsw.Error as error:
            raise in_our_words(error, home / DATABASE) from error
        except OSError as error:
            raise StoreError(
                f"The store in {home} cannot be opened: {error}.", recovery="Check its permissions and the disk."
            ) from error
    if not url.startswith(POSTGRES_SCHEMES):
        raise BadInput(
            "HOLDFAST_DATABASE_URL",
            "must start with postgresql://",
            recovery="Leave it out to keep everything in one file of the data directory.",
        )
    return await asyncio.to_thread(_open_postgres, home, url, clock, clock_offset, ids, known)


def _open_sqlite(
    home: Path,
    clock: Clock,
    ids: Ids,
    known: list[Migration] | None,
    on_corrupt: Callable[[StoreCorrupt], None] | None,
) -> tuple[Store, list[str]]:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = home / DATABASE
    notices: list[str] = []
    damage = check_at_start(path)
    if damage is None and (home / CORRUPT).exists() and path.exists():
        damage = check_every_page(path)
    if damage is not None:
        from holdfast.store.salvage import salvage

        report = salvage(path, damage, clock=clock, known=known)
        notices += [*report.lines(), f"This report is kept as {report.saved_as}."]
    (home / CORRUPT).unlink(missing_ok=True)

    def backup(connection: apsw.Connection, step: Migration) -> None:
        from holdfast.store.backup import backup_before_migration

        backup_before_migration(home, clock)(connection, step)

    store = SqliteStore.open(path, clock=clock, ids=ids, known=known, before_migration=backup)
    path.chmod(0o600)
    if not (home / CREATED).exists():
        mark(home, CREATED, datetime.now(UTC).isoformat(timespec="seconds"))

    def note_damage(error: StoreCorrupt) -> None:
        mark(home, CORRUPT, error.message)
        if on_corrupt is not None:
            on_corrupt(error)

    store.corrupt = note_damage
    return store, notices


def _open_postgres(
    home: Path,
    url: str,
    clock: Clock,
    clock_offset: Callable[[], int] | None,
    ids: Ids,
    known: list[Migration] | None,
) -> tuple[Store, list[str]]:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        from holdfast.store.backup import postgres_backup_before_migration
        from holdfast.store.postgres import PostgresStore, no_offset
    except ImportError as error:
        raise StoreError(
            f"PostgreSQL needs packages that are not installed ({error.name}).",
            recovery="Install them: pip install 'holdfast[postgres]'",
        ) from error
    taken = postgres_backup_before_migration(home, clock, known)
    store = PostgresStore.open(
        url, clock_offset=clock_offset or no_offset, ids=ids, known=known, before_migration=taken
    )
    return store, []
