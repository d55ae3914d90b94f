"""Every row that can still be read from a damaged table, and which could not."""

from __future__ import annotations

import heapq
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

import apsw

from holdfast.store.copying import Table

PROBES_MOST = 20_000
"""Enough to isolate thousands of damaged rows; a table with more damage is given up piece by piece."""
ROWID_MOST = 1 << 48
"""Beyond any row number a store reaches; where to look when a table's end cannot be read."""

UNREADABLE = (apsw.CorruptError, apsw.NotADBError, apsw.IOError, apsw.SQLError, UnicodeDecodeError)
"""How damage shows: a broken page, a page that is not there, a schema that does not parse, text that is none."""


@dataclass(slots=True)
class DamagedTable:
    """Reads a table from both ends towards the damage, then splits what is left until the damage is alone."""

    connection: apsw.Connection
    table: Table
    lost: list[tuple[int, int]] = field(default_factory=list)
    """The ranges of row numbers in which nothing can be read. Not each number in them need have been a row."""

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Every readable row; `lost` is complete when this ends."""
        first, last = self._bounds()
        waiting = [(first - last, first, last)]  # the widest range first, so that a limit on probes costs least
        probes = 0
        while waiting:
            _, low, high = heapq.heappop(waiting)
            if probes >= PROBES_MOST:
                self.lost.append((low, high))
                continue
            probes += 2
            upward = yield from self._scan(low, high, backward=False)
            if upward is None:
                continue
            downward = yield from self._scan(upward, high, backward=True)
            if downward is None:
                continue
            if downward <= upward:
                self.lost.append((upward, upward))
                continue
            middle = (upward + downward) // 2
            for part in ((upward, middle), (middle + 1, downward)):
                heapq.heappush(waiting, (part[0] - part[1], *part))
        self.lost = _merged(self.lost)

    def _bounds(self) -> tuple[int, int]:
        ends = []
        for order, otherwise in (("", 1), ("DESC", ROWID_MOST)):
            sql = f"SELECT rowid FROM {self.table.quoted} NOT INDEXED ORDER BY rowid {order} LIMIT 1"  # noqa: S608
            try:
                found = self.connection.execute(sql).fetchall()
            except UNREADABLE:
                ends.append(otherwise)
            else:
                ends.append(int(str(found[0][0])) if found else 0)
        return min(ends[0], 1), max(ends)

    def _scan(self, low: int, high: int, *, backward: bool) -> Generator[tuple[Any, ...], None, int | None]:
        """Yield the rows of a range until one cannot be read; returns the number at which that happened, or None."""
        order = "DESC" if backward else "ASC"
        sql = (
            f"SELECT rowid, {self.table.quoted_columns} FROM {self.table.quoted} NOT INDEXED"  # noqa: S608
            f" WHERE rowid BETWEEN ? AND ? ORDER BY rowid {order}"
        )
        position = high if backward else low
        try:
            for number, *values in self.connection.execute(sql, (low, high)):
                # A damaged tree may lead in circles; the range that is still to be read must shrink all the same.
                position = min(position, number - 1) if backward else max(position, number + 1)
                yield tuple(values)
        except UNREADABLE:
            return position
        return None


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged
