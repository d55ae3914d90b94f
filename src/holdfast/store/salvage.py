"""A damaged SQLite database: kept aside, rebuilt from all that can be read, the loss reported by name."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw

from holdfast.errors import StoreCorrupt
from holdfast.store import Clock
from holdfast.store.copying import LEDGER_TABLE, Table, sqlite_counts, sqlite_tables
from holdfast.store.damage import look_into, page_size
from holdfast.store.files import beside, newest_backup, publish, remove_database, replace_database, utc_stamp
from holdfast.store.integrity import integrity_problems
from holdfast.store.log_repair import WAL_HEADER, RepairedLog, repair_log
from holdfast.store.loss_notices import LossNotices
from holdfast.store.migrations import Migration, load, pending
from holdfast.store.reading_damaged import ROWID_MOST, UNREADABLE, DamagedTable
from holdfast.store.repair import Loss, SessionLoss, make_consistent
from holdfast.store.sqlite import applied_migrations, connect, in_our_words, migrate, system_clock
from holdfast.store.verify import numbers_text

ROOT_OF_TREE = (2, 5, 10, 13)
"""The first byte of a page that belongs to a table or an index."""


@dataclass(slots=True)
class SalvageReport:
    """What became of a damaged database."""

    database: str
    reason: str
    kept: dict[str, int]
    lost: list[Loss]
    sessions: list[SessionLoss]
    readable: bool
    """False when nothing of the old database could be read."""
    aside: Path | None
    """Where the damaged database is kept; None when there was none left."""
    newest_backup: str | None
    saved_as: Path
    log: RepairedLog | None

    @property
    def lost_lines(self) -> list[str]:
        """What is gone, by name, a line each."""
        lines = [str(loss) for loss in (*self.sessions, *self.lost)]
        if not self.readable:
            lines.append(f"everything in {self.database}: nothing of it could be read")
        if self.log is not None and self.log.dropped:
            lines.append(
                f"{self.log.dropped} of the {self.log.frames} pages in the write-ahead log, which held the newest"
                " changes; some of them may be missing"
            )
        return lines

    def lines(self) -> list[str]:
        """The report as text for people."""
        text = [self.reason]
        if self.aside is not None:
            text.append(f"The damaged {self.database} is kept as {self.aside.name}.")
        if self.readable:
            kept = ", ".join(f"{count} {name}" for name, count in sorted(self.kept.items()) if count)
            text.append(f"A new {self.database} was made from all that could be read: {kept or 'no rows'}.")
        else:
            text.append(f"Nothing in it could be read: the new {self.database} is empty.")
        text += [f"Lost: {line}" for line in self.lost_lines] or ["No row is known to be lost."]
        if self.newest_backup is not None:
            text.append(f"The newest backup is {self.newest_backup}; holdfast restore puts one back.")
        return text


def salvage(
    path: Path,
    damage: StoreCorrupt,
    *,
    clock: Clock = system_clock,
    known: list[Migration] | None = None,
) -> SalvageReport:
    """Replace the damaged database at `path` by a new one with all that can be read.

    The old file stays in its place until the new one is finished and the report is written, so that a salvage which is
    itself cut off can simply be repeated.
    """
    steps = load() if known is None else known
    stamp = utc_stamp(clock())
    aside = beside(path, f".corrupt-{stamp}")
    draft = beside(path, ".salvaging")
    remove_database(draft)
    try:
        with _readable(path, steps) as (source, log):
            applied = _ledger(source)
            # The new file gets the schema of the old one; opening it migrates it like any other.
            behind = pending(applied, steps) if applied else []
            kept, lost, sessions = _rebuild(source, draft, [step for step in steps if step not in behind], clock)
        report = SalvageReport(
            path.name,
            damage.message,
            kept,
            lost,
            sessions,
            readable=source is not None,
            aside=aside if path.exists() or beside(path, "-wal").exists() else None,
            newest_backup=newest_backup(path.parent),
            saved_as=path.parent / f"salvage-{stamp}.txt",
            log=log,
        )
        _save(report)
        # Before the new file is in its place: after that nothing else would tell of the loss.
        LossNotices(path.parent).record(
            clock(), report.reason, report.lost_lines, report=str(report.saved_as), backup=report.newest_backup
        )
        replace_database(path, draft, aside)
        return report
    except apsw.Error as error:
        raise in_our_words(error, draft) from error
    finally:
        remove_database(draft)


def _save(report: SalvageReport) -> None:
    draft = beside(report.saved_as, ".partial")
    draft.touch(mode=0o600)
    draft.write_text("\n".join(report.lines()) + "\n", encoding="utf-8")
    publish(draft, report.saved_as)


# -- reading --------------------------------------------------------------------------------------------------------


@contextmanager
def _readable(path: Path, steps: list[Migration]) -> Iterator[tuple[apsw.Connection | None, RepairedLog | None]]:
    """The damaged database as far as it opens, and what its write-ahead log gave; None when nothing can be read.

    It is read in its place if it can be. A copy stands in for one with a log, which may need repair, and for one that
    has lost its beginning.
    """
    copy = beside(path, ".salvaging-copy")
    fresh = _first_page(copy, steps)
    log = beside(path, "-wal")
    logged = log.exists() and log.stat().st_size > WAL_HEADER
    connection = None if logged else _open_if_readable(path)
    repaired: RepairedLog | None = None
    try:
        for first_page in _beginnings(path, fresh):
            if connection is None:
                repaired = _copy_with(path, copy, first_page)
                connection = _open_if_readable(copy)
        yield connection, repaired
    finally:
        if connection is not None:
            connection.close()
        remove_database(copy)


def _open_if_readable(path: Path) -> apsw.Connection | None:
    # SQLite deletes the log beside an empty database, so one without a header is never opened in its place.
    if page_size(_beginning(path, 100)) == 0:
        return None
    connection = look_into(path)
    try:
        found = connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchall()
        sqlite_tables(connection)
    except UNREADABLE:
        found = [(0,)]
    if found[0][0]:
        return connection
    connection.close()
    return None


def _beginnings(path: Path, fresh: bytes) -> list[bytes]:
    """First pages to try: its own, its own with the header of a new store, that of a new store.

    The first page says where the tables are. A store that was made by this program has them where a new one has
    them, so its own first page can be replaced; whatever then reads as the wrong table does not fit that table's
    constraints.
    """
    own = _beginning(path, len(fresh))
    if len(own) < len(fresh):
        return [fresh] if own or beside(path, "-wal").exists() else []
    borrowed = _with_pages(fresh, path.stat().st_size // len(fresh))
    found = [borrowed]
    if own[100] in ROOT_OF_TREE:
        found.insert(0, borrowed[:100] + own[100:])
    if page_size(own) == len(fresh):
        found.insert(0, own)
    return found


def _with_pages(first_page: bytes, pages: int) -> bytes:
    """A first page that says: so many pages, none of them free."""
    return first_page[:28] + pages.to_bytes(4, "big") + bytes(8) + first_page[40:]


def _first_page(scratch: Path, steps: list[Migration]) -> bytes:
    remove_database(scratch)
    connection = connect(scratch)
    try:
        migrate(connection, lambda: 0, steps)
    finally:
        connection.close()
    return _beginning(scratch, page_size(_beginning(scratch, 100)))


def _copy_with(path: Path, copy: Path, first_page: bytes) -> RepairedLog | None:
    remove_database(copy)
    if path.exists():
        shutil.copyfile(path, copy)
    copy.touch()
    with copy.open("r+b") as file:
        file.write(first_page)
    log = beside(path, "-wal")
    return repair_log(log, beside(copy, "-wal"), len(first_page)) if log.exists() else None


def _beginning(path: Path, size: int) -> bytes:
    if not path.exists():
        return b""
    with path.open("rb") as file:
        return file.read(size)


def _ledger(source: apsw.Connection | None) -> list[tuple[int, str, str]]:
    if source is None:
        return []
    try:
        return applied_migrations(source)
    except UNREADABLE:
        return []


# -- rebuilding -----------------------------------------------------------------------------------------------------


def _rebuild(
    source: apsw.Connection | None, draft: Path, steps: list[Migration], clock: Clock
) -> tuple[dict[str, int], list[Loss], list[SessionLoss]]:
    draft.touch(mode=0o600)
    target = connect(draft)
    try:
        migrate(target, clock, steps)
        lost: list[Loss] = []
        sessions: list[SessionLoss] = []
        if source is not None:
            target.execute("PRAGMA foreign_keys = OFF")
            for table in sqlite_tables(target):
                if table.name != LEDGER_TABLE:
                    lost += _save_table(source, target, table)
            with target:
                more, sessions = make_consistent(target)
            lost += more
        kept = {name: count for name, count in sqlite_counts(target).items() if name != LEDGER_TABLE}
        problems = integrity_problems(target)
        if problems:
            raise StoreCorrupt(
                f"The salvaged database is damaged as well ({problems[0]}).",
                recovery="Check the disk; the old database was not touched.",
            )
    finally:
        target.close()
    return kept, lost, sessions


def _save_table(source: apsw.Connection, target: apsw.Connection, table: Table) -> list[Loss]:
    marks = ", ".join("?" * len(table.columns))
    insert = f"INSERT OR IGNORE INTO {table.quoted} ({table.quoted_columns}) VALUES ({marks})"  # noqa: S608
    damaged = DamagedTable(source, table)
    misfits = 0
    with target:
        target.execute(f"DELETE FROM {table.quoted}")  # noqa: S608 - the rows that the migrations put there
        for row in damaged.rows():
            try:
                target.execute(insert, row)
            except (apsw.ConstraintError, apsw.MismatchError):
                misfits += 1
                continue
            misfits += target.changes() == 0
    losses = [Loss(table.name, _range_text(low, high)) for low, high in damaged.lost]
    if misfits:
        losses.append(Loss(table.name, f"{misfits} rows that no longer fit the table"))
    return losses


def _range_text(low: int, high: int) -> str:
    if high >= ROWID_MOST:
        return "the whole table" if low <= 1 else f"everything from row {low} on"
    return f"row {low}" if low == high else f"rows {numbers_text(low, high)} (as far as there were such rows)"
