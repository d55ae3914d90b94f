"""Opens the store as a daemon does: checks for damage, salvages, backs up before migrations, and reports all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from holdfast.errors import BadInput, StoreCorrupt, StoreError
from holdfast.store import Clock, Store
from holdfast.store.files import newest_backup
from holdfast.store.migrations import Migration
from holdfast.store.salvage.damage import CORRUPT, CREATED, check_at_start, check_every_page, mark
from holdfast.store.sqlite import SALVAGE_ON_RESTART, SqliteStore, system_clock, to_store_error

if TYPE_CHECKING:
    from holdfast.store.salvage.salvage import SalvageReport

DATABASE = "holdfast.db"
VERIFYING = ".verifying-"
"""Name prefix of the folders in which `verify` checks copies."""
POSTGRES_SCHEMES = ("postgresql://", "postgres://")


async def open_store(
    home: Path,
    url: str | None = None,
    *,
    clock: Clock = system_clock,
    clock_offset: Callable[[], int] | None = None,
    known: list[Migration] | None = None,
    on_corrupt: Callable[[StoreCorrupt], None] | None = None,
) -> tuple[Store, list[str]]:
    """Open the store of the data directory `home`, or the PostgreSQL at `url`; returns it with notices for the user.

    Losses are also recorded in the data directory's `LossNotices`. `clock` is SQLite's, `clock_offset` is added to the
    PostgreSQL server's own. `on_corrupt` is called, from the thread that notices, when damage is found at run time,
    after it was noted for the next start.
    """
    store, salvaged = await _open(home, url, clock, clock_offset, known, on_corrupt)
    try:
        if known is None:  # a test's custom schema has no sessions
            await _record_losses(home, store, clock)
    except BaseException:
        await store.close()
        raise
    return store, [*salvaged.lines(), f"This report is saved as {salvaged.saved_as}."] if salvaged is not None else []


async def _record_losses(home: Path, store: Store, clock: Clock) -> None:
    """Record what the high-water mark knows and the store no longer has, except what a salvage already reported."""
    from holdfast.store.high_water import HighWater

    mark = HighWater(home, store)
    gone = await mark.lost()
    if not gone:
        return
    from holdfast.store.loss_notices import LossNotices

    notices = LossNotices(home)
    reported = [line for notice in notices.open() for line in notice.lost]
    unreported = [line for line in gone if not any(_same_session(line, one) for one in reported)]
    reason = "The store is missing data that it held before."
    notices.record(clock(), reason, unreported, backup=newest_backup(home))
    # Only now: until the loss is recorded, the mark is the only evidence of it.
    await mark.reset()


def _same_session(line: str, other: str) -> bool:
    """Return whether two lines are about the same session."""
    return line.startswith("session ") and line.split(":")[0].split()[1] in other


async def _open(
    home: Path,
    url: str | None,
    clock: Clock,
    clock_offset: Callable[[], int] | None,
    known: list[Migration] | None,
    on_corrupt: Callable[[StoreCorrupt], None] | None,
) -> tuple[Store, SalvageReport | None]:
    if url is None:
        try:
            return await asyncio.to_thread(_open_sqlite, home, clock, known, on_corrupt)
        except (apsw.Error, StoreCorrupt) as error:
            named = to_store_error(error, home / DATABASE) if isinstance(error, apsw.Error) else error
            if isinstance(named, StoreCorrupt):
                mark(home, CORRUPT, named.message)  # otherwise the next start would run into the same damage
                named.recovery = named.recovery or SALVAGE_ON_RESTART
            if named is error:
                raise
            raise named from error
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
    return await asyncio.to_thread(_open_postgres, home, url, clock, clock_offset, known), None


def _open_sqlite(
    home: Path,
    clock: Clock,
    known: list[Migration] | None,
    on_corrupt: Callable[[StoreCorrupt], None] | None,
) -> tuple[Store, SalvageReport | None]:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = home / DATABASE
    for left in home.glob(VERIFYING + "*"):  # left by a verification that was killed; it is a full copy of the store
        import shutil  # imported late to keep the daemon's start fast

        shutil.rmtree(left, ignore_errors=True)
    report: SalvageReport | None = None
    damage = check_at_start(path)
    if damage is None and (home / CORRUPT).exists() and path.exists():
        damage = check_every_page(path)
    if damage is not None:
        from holdfast.store.salvage.salvage import salvage

        report = salvage(path, damage, clock=clock, known=known)
    (home / CORRUPT).unlink(missing_ok=True)

    def backup(connection: apsw.Connection, step: Migration) -> None:
        from holdfast.store.backup.backup import backup_before_migration

        backup_before_migration(home, clock)(connection, step)

    store = SqliteStore.open(path, clock=clock, known=known, before_migration=backup)
    path.chmod(0o600)
    if not (home / CREATED).exists():
        mark(home, CREATED, datetime.now(UTC).isoformat(timespec="seconds"))

    def note_damage(error: StoreCorrupt) -> None:
        mark(home, CORRUPT, error.message)
        if on_corrupt is not None:
            on_corrupt(error)

    store.corrupt = note_damage
    return store, report


def _open_postgres(
    home: Path,
    url: str,
    clock: Clock,
    clock_offset: Callable[[], int] | None,
    known: list[Migration] | None,
) -> Store:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        from holdfast.store.backup.backup import postgres_backup_before_migration
        from holdfast.store.postgres import PostgresStore, no_offset
    except ImportError as error:
        from holdfast.setup.extras import install_line

        raise StoreError(
            f"PostgreSQL needs packages that are not installed ({error.name}).",
            recovery=f"Install them: {install_line('postgres')}",
        ) from error
    taken = postgres_backup_before_migration(home, clock, known)
    return PostgresStore.open(url, clock_offset=clock_offset or no_offset, known=known, before_migration=taken)
