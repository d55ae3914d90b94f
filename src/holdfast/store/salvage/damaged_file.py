"""Makes a damaged database as readable as possible: a copy with its log applied and this program's schema installed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from holdfast.lazy_dataclass import dataclass
from holdfast.store.copying import LEDGER_TABLE
from holdfast.store.files import beside, remove_database
from holdfast.store.migrations import Migration, pending
from holdfast.store.salvage.damage import open_for_inspection, page_size
from holdfast.store.salvage.log_repair import WAL_HEADER, RepairedLog, apply_log, header_is_valid, repair_log
from holdfast.store.salvage.own_schema import SCHEMA_TYPES, Schema, find_roots, install, schema_of
from holdfast.store.salvage.page_map import Walk, stray_leaves
from holdfast.store.salvage.raw_pages import RawPages, Values
from holdfast.store.salvage.reading_damaged import DamagedTable, Parts

DEFAULT_PAGE_SIZE = 4096


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """The readable parts of a damaged database."""

    connection: apsw.Connection
    pages: RawPages
    schema: Schema
    steps: list[Migration]
    """The migrations that were applied to it."""
    roots: dict[str, int]
    strays: dict[str, list[int]]
    """By table: leaf pages that no other page refers to."""
    unplaced: int
    """How many such pages are left out: they may belong to more than one table, or be free."""

    def table(self, name: str, kept: Callable[[int], bool]) -> DamagedTable:
        """Return a reader of one table; `kept` says which rows need not be read again."""
        names = [index for index in self.schema.indexes_of(name) if index in self.roots]
        indexes = [(self.roots[index], self.schema.trees[index]) for index in names]
        parts = Parts(self.roots.get(name), indexes, self.strays.get(name, []))
        return DamagedTable(self.connection, self.pages, self.schema.shapes[name], parts, kept)

    def index_entries(self, name: str) -> Iterator[Values]:
        """Yield the readable entries of an index: its columns, then the rowid."""
        if name not in self.roots:
            return
        width = self.schema.trees[name].width + 1
        for page in Walk(self.pages, self.roots[name], is_table=False).leaves():
            yield from (entry for entry in self.pages.entries(page.page) if entry is not None and len(entry) == width)


@contextmanager
def damaged_file(path: Path, known: list[Migration]) -> Iterator[tuple[DamagedFile | None, RepairedLog | None]]:
    """Open what is readable of the database at `path`, with its repaired log; None if it holds none of our tables."""
    copy = beside(path, ".salvaging-copy")
    connection = None
    try:
        size, log = _copy_with_log(path, copy)
        pages = RawPages(copy, size)
        try:
            schema, steps, roots = _find_own_tables(pages, beside(path, ".salvaging-schema"), known)
            if not roots:
                yield None, log
                return
            strays, unplaced = _assign_strays(pages, schema, roots)
            install(copy, size, schema, roots)
            connection = open_for_inspection(copy)
            yield DamagedFile(connection, pages, schema, steps, roots, strays, unplaced), log
        finally:
            pages.close()
    finally:
        if connection is not None:
            connection.close()
        remove_database(copy)


def _copy_with_log(path: Path, copy: Path) -> tuple[int, RepairedLog | None]:
    """Copy the file and apply the intact part of its log; returns the page size and the repaired log."""
    remove_database(copy)
    if path.exists():
        shutil.copyfile(path, copy)
    copy.touch(mode=0o600)
    copy.chmod(0o600)
    log = beside(path, "-wal")
    with copy.open("rb") as file:
        size = page_size(file.read(100))
    if not log.exists() or log.stat().st_size <= WAL_HEADER:
        return size or DEFAULT_PAGE_SIZE, None
    with log.open("rb") as file:
        header = file.read(WAL_HEADER)
    size_in_log = int.from_bytes(header[8:12], "big")
    size = size_in_log if header_is_valid(header, size_in_log) else size or DEFAULT_PAGE_SIZE
    rewritten = beside(copy, "-wal")
    repaired = repair_log(log, rewritten, size)
    apply_log(rewritten, copy, size)
    rewritten.unlink()
    return size, repaired


def _find_own_tables(
    pages: RawPages, scratch: Path, known: list[Migration]
) -> tuple[Schema, list[Migration], dict[str, int]]:
    """Return the schema that the file had, by its migration ledger, and the roots of its tables and indexes."""
    schema = schema_of(scratch, known)
    roots = find_roots(pages, schema)
    applied = _ledger(pages, schema, roots.get(LEDGER_TABLE), known)
    pending(applied, known)  # refuses what a newer program wrote
    newest = max((number for number, _, _ in applied), default=known[-1].number if known else 0)
    steps = [step for step in known if step.number <= newest]
    if len(steps) < len(known):
        schema = schema_of(scratch, steps)
        roots = find_roots(pages, schema)  # an older schema may have tables that the newest does not have
    return schema, steps, roots


def _ledger(pages: RawPages, schema: Schema, root: int | None, known: list[Migration]) -> list[tuple[int, str, str]]:
    """Return the migrations that the file records as applied, except rows whose number does not match their name."""
    if root is None:
        return []
    names = {step.name: step.number for step in known}
    entries = []
    for leaf in Walk(pages, root, is_table=True).leaves():
        for cell in pages.cells(leaf.page):
            stored = pages.row(cell)
            row = None if stored is None else schema.shapes[LEDGER_TABLE].complete(cell.rowid, stored)
            if row is not None and names.get(row[1], row[0]) == row[0]:
                entries.append((row[0], str(row[1]), str(row[2])))
    return entries


def _assign_strays(pages: RawPages, schema: Schema, roots: dict[str, int]) -> tuple[dict[str, list[int]], int]:
    """Assign stray leaf pages to the table whose rows they hold; also returns how many fit no single table."""
    strays, unplaced = stray_leaves(pages, list(roots.values()))
    placed: dict[str, list[int]] = {}
    for number in strays:
        rows = [(cell.rowid, row) for cell in pages.cells(number) if (row := pages.row(cell)) is not None]
        if not rows or rows[0][1][0] in SCHEMA_TYPES:
            continue
        fitting = [
            name
            for name, shape in schema.shapes.items()
            if all(shape.complete(rowid, row) is not None for rowid, row in rows)
        ]
        # Where two tables look alike, it is the one whose root is lost.
        fitting = [name for name in fitting if name not in roots] or fitting
        if len(fitting) == 1:
            placed.setdefault(fitting[0], []).append(number)
        else:
            unplaced += bool(fitting)
    return placed, unplaced
