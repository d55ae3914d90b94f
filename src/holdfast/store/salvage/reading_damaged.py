"""Reads every row of a damaged table that is still readable, and names those that are not.

First through SQLite, from both ends. Then each missing row that a leaf page or an index names: by its rowid through
SQLite, which needs only the pages on the path to it, or from its own page alone. That takes a few passes over the file;
memory is needed for lost rows, not for kept ones.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import field

import apsw

from holdfast.lazy_dataclass import dataclass
from holdfast.store.copying import quote
from holdfast.store.damaged_text import byte_faithful, values
from holdfast.store.salvage.own_schema import Tree
from holdfast.store.salvage.page_map import EVERYTHING, Range, Walk
from holdfast.store.salvage.raw_pages import Cell, Child, RawPages, Values
from holdfast.store.salvage.table_shapes import Shape

UNREADABLE = (apsw.Error, MemoryError)
"""Errors that mean damage: when SQLite reads a private copy, it has no other reason to fail."""
MAX_ROWID_DISTANCE = 1_000_000
"""A rowid this far from the page's first one is treated as damage, not as the name of a lost row."""

Row = tuple[int, Values]
"""A rowid and the row's columns."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Where the rows of a table may be found in a file."""

    root: int | None
    indexes: list[tuple[int, Tree]]
    """Root and tree of its indexes."""
    strays: list[int]
    """Leaf pages that no other page refers to."""


@dataclass(slots=True)
class DamagedTable:
    """Reads `rows`; its attributes about losses are complete once they are exhausted."""

    connection: apsw.Connection
    pages: RawPages
    shape: Shape
    parts: Parts
    kept: Callable[[int], bool]
    """Returns whether the row with this rowid was already kept."""
    refused: dict[int, str] = field(default_factory=dict)
    """Rowids that do not fit this table, with the reason; the consumer of `rows` adds those it cannot keep."""
    lost: set[int] = field(default_factory=set)
    """Rowids that existed and cannot be read."""
    nameless: int = 0
    """Number of lost rows whose rowid cannot be read either."""
    gaps: list[Range] = field(default_factory=list)
    """Rowid ranges in which rows may have been lost without a trace."""

    def rows(self) -> Iterator[Row]:
        """Yield every readable row."""
        if self.parts.root is None:
            self.gaps.append(EVERYTHING)
        else:
            if not (yield from self._scan("ASC")):
                yield from self._scan("DESC")
            walk = Walk(self.pages, self.parts.root, is_table=True)
            for leaf in walk.leaves():
                yield from self._rest_of(leaf)
            self.gaps += walk.gaps
        for page in self.parts.strays:
            yield from self._rest_of(Child(page, *EVERYTHING))
        indexes_are_whole = yield from self._indexed()
        if indexes_are_whole:  # they name each row by its rowid
            self.gaps.clear()
            self.nameless = 0
        self.lost = {rowid for rowid in self.lost if not self.kept(rowid) and rowid not in self.refused}

    def _scan(self, order: str) -> Generator[Row, None, bool]:
        """Yield rows until one cannot be read; returns whether all could."""
        sql = f"SELECT rowid, {self._columns} FROM {self.shape.table.quoted} NOT INDEXED ORDER BY rowid {order}"  # noqa: S608
        try:
            for rowid, *columns in self.connection.execute(sql):
                yield rowid, values(tuple(columns))
        except UNREADABLE:
            return False
        return True

    def _rest_of(self, leaf: Child) -> Iterator[Row]:
        """Yield the rows of a page that were not found yet."""
        for cell in self.pages.cells(leaf.page):
            if self._is_settled(cell.rowid):
                continue
            row = self._fetch(cell.rowid) or self._from_page(cell, leaf)
            if row is not None:
                yield row
            elif leaf.low <= cell.rowid <= min(leaf.high, leaf.low + MAX_ROWID_DISTANCE):
                self.lost.add(cell.rowid)
            else:
                self.nameless += 1

    def _indexed(self) -> Generator[Row, None, bool]:
        """Yield rows that only an index names; returns whether some index names all rows."""
        whole = False
        for root, index in self.parts.indexes:
            walk = Walk(self.pages, root, is_table=False)
            complete = True
            for page in walk.leaves():
                for entry in self.pages.entries(page.page):
                    if entry is None or len(entry) != index.width + 1:
                        complete = False
                    elif not self._is_settled(entry[-1]):
                        row = self._fetch(entry[-1])
                        if row is None:
                            self.lost.add(entry[-1])
                        else:
                            yield row
            whole |= complete and not walk.gaps and not index.is_partial
        return whole

    def _is_settled(self, rowid: int) -> bool:
        return rowid in self.refused or self.kept(rowid)

    def _fetch(self, rowid: int) -> Row | None:
        if self.parts.root is None:
            return None
        sql = f"SELECT {self._columns} FROM {self.shape.table.quoted} NOT INDEXED WHERE rowid = ?"  # noqa: S608
        try:
            rows = self.connection.execute(sql, (rowid,)).fetchall()
        except UNREADABLE:
            return None
        return (rowid, values(rows[0])) if rows else None

    def _from_page(self, cell: Cell, leaf: Child) -> Row | None:
        stored = self.pages.row(cell) if leaf.low <= cell.rowid <= leaf.high else None
        row = None if stored is None else self.shape.complete(cell.rowid, stored)
        return None if row is None else (cell.rowid, row)

    @property
    def _columns(self) -> str:
        return byte_faithful(quote(column) for column in self.shape.table.columns)
