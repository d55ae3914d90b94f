"""Salvages a damaged SQLite database: keeps it aside, rebuilds it from all readable rows, and names what was lost."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import apsw

from holdfast.errors import StoreCorrupt
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Clock
from holdfast.store.copying import LEDGER_TABLE, Progress, sqlite_counts
from holdfast.store.damaged_text import DamagedText, byte_faithful, marks, values
from holdfast.store.files import beside, newest_backup, publish, remove_database, replace_database, utc_stamp
from holdfast.store.integrity import integrity_problems
from holdfast.store.loss_notices import LossNotices
from holdfast.store.migrations import Migration, load
from holdfast.store.salvage.damaged_file import DamagedFile, damaged_file
from holdfast.store.salvage.log_repair import RepairedLog
from holdfast.store.salvage.page_map import Range
from holdfast.store.salvage.raw_pages import MAX_ROWID, Values
from holdfast.store.salvage.reading_damaged import DamagedTable
from holdfast.store.salvage.repair import Loss, SessionLoss, make_consistent, rows_text
from holdfast.store.salvage.session_clues import SessionClues
from holdfast.store.salvage.table_shapes import Shape
from holdfast.store.sqlite import connect, migrate, system_clock, to_store_error
from holdfast.store.verify import numbers_text

_log = logging.getLogger(__name__)


def _logged(done: float, doing: str) -> None:
    _log.info("Salvaging the store: %d %%, %s", done * 100, doing)


@dataclass(slots=True)
class SalvageReport:
    """Result of salvaging a damaged database."""

    database: str
    reason: str
    kept: dict[str, int]
    lost: list[Loss]
    sessions: list[SessionLoss]
    readable: bool
    """False if nothing in the old database could be read."""
    aside: Path | None
    """Where the damaged database is kept; None if there was no file."""
    newest_backup: str | None
    saved_as: Path
    log: RepairedLog | None

    @property
    def lost_lines(self) -> list[str]:
        """Return the losses, one line each; without titles, because loss notices outlive forgotten sessions."""
        return [*(f"session {loss.session_id}: {loss.text}" for loss in self.sessions), *self._other_losses]

    @property
    def _other_losses(self) -> list[str]:
        lines = [str(loss) for loss in self.lost]
        if not self.readable:
            lines.append(f"everything in {self.database}: nothing of it could be read")
        if self.log is not None and self.log.dropped:
            lines.append(
                f"{self.log.dropped} of the {self.log.frames} pages in the write-ahead log, which held the newest"
                " changes; some of them may be missing"
            )
        return lines

    def lines(self) -> list[str]:
        """Return the report as text for people."""
        text = [self.reason]
        if self.aside is not None:
            text.append(f"The damaged {self.database} is kept as {self.aside.name}.")
        if self.readable:
            kept = ", ".join(f"{count} {name}" for name, count in sorted(self.kept.items()) if count)
            text.append(f"A new {self.database} was made from all that could be read: {kept or 'no rows'}.")
        else:
            text.append(f"Nothing in it could be read: the new {self.database} is empty.")
        lost = [*map(str, self.sessions), *self._other_losses]
        text += [f"Lost: {line}" for line in lost] or ["No row is known to be lost."]
        if self.newest_backup is not None:
            text.append(f"The newest backup is {self.newest_backup}; holdfast restore puts one back.")
        return text


def salvage(
    path: Path,
    damage: StoreCorrupt,
    *,
    clock: Clock = system_clock,
    known: list[Migration] | None = None,
    progress: Progress = _logged,
) -> SalvageReport:
    """Replace the damaged database at `path` with a new one that holds everything readable.

    The old file stays in place until the new one is finished and the report is written, so that an interrupted salvage
    can simply be repeated.
    """
    steps = load() if known is None else known
    stamp = utc_stamp(clock())
    aside = beside(path, f".corrupt-{stamp}")
    draft = beside(path, ".salvaging")
    remove_database(draft)
    try:
        with damaged_file(path, steps) as (source, log):
            # The new file gets the old one's schema version; opening it migrates it like any other.
            had = steps if source is None else source.steps
            kept, lost, sessions = _rebuild(source, draft, had, clock, progress)
        report = SalvageReport(
            path.name,
            damage.message,
            kept,
            lost,
            sessions,
            # A page of noise may look like one of ours, and the event counter is recreated anyway.
            readable=source is not None and any(count for name, count in kept.items() if name != "event_head"),
            aside=aside if path.exists() or beside(path, "-wal").exists() else None,
            newest_backup=newest_backup(path.parent),
            saved_as=path.parent / f"salvage-{stamp}.txt",
            log=log,
        )
        _save(report)
        # Before the new file is in place: after that nothing else would show the loss.
        LossNotices(path.parent).record(
            clock(), report.reason, report.lost_lines, report=str(report.saved_as), backup=report.newest_backup
        )
        replace_database(path, draft, aside)
        return report
    except apsw.Error as error:
        raise to_store_error(error, draft) from error
    finally:
        remove_database(draft)


def _save(report: SalvageReport) -> None:
    draft = beside(report.saved_as, ".partial")
    draft.touch(mode=0o600)
    draft.write_text("\n".join(report.lines()) + "\n", encoding="utf-8")
    publish(draft, report.saved_as)


# -- rebuilding -----------------------------------------------------------------------------------------------------


def _rebuild(
    source: DamagedFile | None, draft: Path, steps: list[Migration], clock: Clock, progress: Progress
) -> tuple[dict[str, int], list[Loss], list[SessionLoss]]:
    draft.touch(mode=0o600)
    target = connect(draft)
    try:
        migrate(target, clock, steps)
        lost: list[Loss] = []
        sessions: list[SessionLoss] = []
        if source is not None:
            target.execute("PRAGMA foreign_keys = OFF")
            for done, table in enumerate(source.schema.shapes):
                progress(done / len(source.schema.shapes), table)
                if table != LEDGER_TABLE:
                    lost += _save_table(source, target, source.schema.shapes[table])
            if source.unplaced:
                lost.append(Loss("pages", f"{source.unplaced} that nothing leads to, which may be free ones"))
            with target:
                more, sessions = make_consistent(target, SessionClues(source))
            lost += more
        kept = {name: count for name, count in sqlite_counts(target).items() if name != LEDGER_TABLE}
        problems = integrity_problems(target)
        if problems:
            raise StoreCorrupt(
                f"The salvaged database is also damaged ({problems[0]}).",
                recovery="Check the disk; the old database was not touched.",
            )
    finally:
        target.close()
    return kept, lost, sessions


def _save_table(source: DamagedFile, target: apsw.Connection, shape: Shape) -> list[Loss]:
    rows = _Rows(target, shape)
    damaged = source.table(shape.table.name, rows.has)
    with target:
        target.execute(f"DELETE FROM {shape.table.quoted}")  # noqa: S608 - the rows that the migrations inserted
        for rowid, row in damaged.rows():
            reason = shape.misfit(row) or rows.insert(rowid, row)
            if reason is not None:
                damaged.refused[rowid] = reason
    return [Loss(shape.table.name, text) for text in [*rows.remarks(), *_losses(rows, damaged)]]


class _Rows:
    """A table of the new database."""

    def __init__(self, target: apsw.Connection, shape: Shape) -> None:
        self._target = target
        self._shape = shape
        table = shape.table
        self._has = f"SELECT 1 FROM {table.quoted} WHERE rowid = ?"  # noqa: S608
        self._get = f"SELECT {byte_faithful(table.quoted_columns.split(', '))} FROM {table.quoted} WHERE rowid = ?"  # noqa: S608
        self._keys = [place for place, column in enumerate(shape.columns) if column.is_key]
        self._put = f"INSERT OR IGNORE INTO {table.quoted} (rowid, {table.quoted_columns}) VALUES (?, "  # noqa: S608
        self._repaired_keys: list[int] = []
        self._clashes = 0

    def has(self, rowid: int) -> bool:
        """Return whether there is a row with this rowid."""
        return bool(self._target.execute(self._has, (rowid,)).fetchall())

    def insert(self, rowid: int, row: Values) -> str | None:
        """Store a row under its rowid, byte for byte; returns the reason if that failed."""
        if any(isinstance(row[place], DamagedText) for place in self._keys):
            row = self._with_readable_keys(rowid, row)
        try:
            self._target.execute(f"{self._put}{marks(row)})", (rowid, *row))
        except (apsw.ConstraintError, apsw.MismatchError) as error:
            return str(error)
        if self._target.changes():
            return None
        same = self._target.execute(self._get, (rowid,)).fetchall()
        if not same:
            return "another row has its key"
        self._clashes += values(same[0]) != row
        return None

    def missing(self, low: int, high: int) -> Range | None:
        """Return the first and the last missing rowid in a range."""
        table = self._shape.table.quoted
        sql = (
            "SELECT min(before + 1), max(number - 1) FROM (SELECT number, lag(number, 1, :low - 1)"  # noqa: S608
            f" OVER (ORDER BY number) AS before FROM (SELECT rowid AS number FROM {table}"
            " WHERE rowid BETWEEN :low AND :high UNION SELECT :high + 1)) WHERE number > before + 1"
        )
        rows = self._target.execute(sql, {"low": low, "high": high}).fetchall()
        first, last = rows[0]
        return None if first is None else (int(str(first)), int(str(last)))

    def remarks(self) -> Iterator[str]:
        """Yield what had to be changed in rows, and which rows were lost to a rowid clash."""
        if self._repaired_keys:
            yield f"{rows_text(self._repaired_keys)}: a damaged key was kept with U+FFFD for the unreadable characters"
        if self._clashes:
            yield f"{self._clashes} rows with the number of another row"

    def _with_readable_keys(self, rowid: int, row: Values) -> Values:
        """Replace damaged key text with readable text: a key that is not UTF-8 could never be looked up."""
        self._repaired_keys.append(rowid)
        return tuple(
            value.readable() if isinstance(value, DamagedText) and place in self._keys else value
            for place, value in enumerate(row)
        )


def _losses(rows: _Rows, damaged: DamagedTable) -> Iterator[str]:
    """Yield what could not be read of a table."""
    if damaged.lost:
        yield rows_text(damaged.lost)
    for low, high in damaged.gaps:
        missing = rows.missing(max(low, 1), min(high, MAX_ROWID - 1))
        if missing is not None:
            yield _range_text(*missing)
    if damaged.nameless:
        yield f"{damaged.nameless} rows whose numbers cannot be read"
    reasons: dict[str, list[int]] = {}
    for rowid, reason in damaged.refused.items():
        reasons.setdefault(reason, []).append(rowid)
    for reason, numbers in reasons.items():
        yield f"{rows_text(numbers)}, which no longer fit the table: {reason}"


def _range_text(low: int, high: int) -> str:
    if high >= MAX_ROWID - 1:
        return "the whole table" if low <= 1 else f"everything from row {low} on (if there were such rows)"
    return f"rows {numbers_text(low, high)} (if there were such rows)"
