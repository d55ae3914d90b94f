"""Every row that can still be read of a damaged table, and which could not.

First by SQLite, from both ends. Then each row that a leaf page or an index names and that is not there yet: by its
number through SQLite, which needs no more than the pages on its way, or from its own page alone. That is a few passes
over the file; memory is needed for what is lost, not for what is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field

import apsw

from holdfast.store.copying import quote
from holdfast.store.damaged_text import byte_faithful, values
from holdfast.store.own_schema import Tree
from holdfast.store.page_map import EVERYTHING, Range, Walk
from holdfast.store.raw_pages import Cell, Child, RawPages, Values
from holdfast.store.table_shapes import Shape

UNREADABLE = (apsw.Error, MemoryError)
"""How damage shows when SQLite reads a copy that nobody else uses: it has no other reason to fail."""
FAR = 1_000_000
"""A row's number this far from the page's first is taken for damage, not for a name of what was lost."""

Row = tuple[int, Values]
"""A row's number and its columns."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Where the rows of a table may be found in a file."""

    root: int | None
    indexes: list[tuple[int, Tree]]
    """Where its indexes begin."""
    strays: list[int]
    """Leaf pages that nothing leads to."""


@dataclass(slots=True)
class DamagedTable:
    """Reads `rows`; what it says of losses is complete when they are over."""

    connection: apsw.Connection
    pages: RawPages
    shape: Shape
    parts: Parts
    kept: Callable[[int], bool]
    """Whether a row with this number was kept already."""
    refused: dict[int, str] = field(default_factory=dict)
    """Rows that are no rows of this table, and why; whoever takes the rows enters what cannot be kept."""
    lost: set[int] = field(default_factory=set)
    """The numbers of rows that must have been there and cannot be read."""
    nameless: int = 0
    """How many rows have lost their number as well."""
    gaps: list[Range] = field(default_factory=list)
    """Between which numbers there may have been rows of which nothing is left."""

    def rows(self) -> Iterator[Row]:
        """Every readable row."""
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
        if indexes_are_whole:  # they know each row by its number
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
        """The rows of a page that were not found yet."""
        for cell in self.pages.cells(leaf.page):
            if self._is_settled(cell.rowid):
                continue
            row = self._fetch(cell.rowid) or self._from_page(cell, leaf)
            if row is not None:
                yield row
            elif leaf.low <= cell.rowid <= min(leaf.high, leaf.low + FAR):
                self.lost.add(cell.rowid)
            else:
                self.nameless += 1

    def _indexed(self) -> Generator[Row, None, bool]:
        """Rows that only an index names; returns whether there is an index that names them all."""
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
            found = self.connection.execute(sql, (rowid,)).fetchall()
        except UNREADABLE:
            return None
        return (rowid, values(found[0])) if found else None

    def _from_page(self, cell: Cell, leaf: Child) -> Row | None:
        stored = self.pages.row(cell) if leaf.low <= cell.rowid <= leaf.high else None
        row = None if stored is None else self.shape.complete(cell.rowid, stored)
        return None if row is None else (cell.rowid, row)

    @property
    def _columns(self) -> str:
        return byte_faithful(quote(column) for column in self.shape.table.columns)
