"""Reads the pages of a SQLite file without SQLite, which rejects a whole page or tree for one wrong byte.

It follows the file format (https://www.sqlite.org/fileformat2.html), for UTF-8 files without reserved bytes, as all of
ours are. No number read from the file is trusted: a page, a cell or a record that does not fit is skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.lazy_dataclass import dataclass
from holdfast.store.damaged_text import text

INDEX_INTERIOR, TABLE_INTERIOR, INDEX_LEAF, TABLE_LEAF = 2, 5, 10, 13
TABLE_KINDS, INDEX_KINDS = (TABLE_INTERIOR, TABLE_LEAF), (INDEX_INTERIOR, INDEX_LEAF)
MAX_ROWID = (1 << 63) - 1
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}

Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Child:
    """A page below another one, and the rowid range of its rows."""

    page: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Cell:
    """A row on a leaf page of a table."""

    rowid: int
    page: int
    offset: int
    """Offset of its payload on the page."""
    size: int


class RawPages:
    """A database file as pages, numbered from 1."""

    def __init__(self, path: Path, size: int) -> None:
        self._file = path.open("rb")
        self.size = size
        self.count = path.stat().st_size // size

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def page(self, number: int) -> bytes:
        """Return the bytes of a page; empty if there is no such page."""
        if not 1 <= number <= self.count:
            return b""
        self._file.seek((number - 1) * self.size)
        return self._file.read(self.size)

    def kind(self, number: int) -> int:
        """Return the type byte of a page; 0 if there is no such page."""
        if not 1 <= number <= self.count:
            return 0
        self._file.seek((number - 1) * self.size + _header(number))
        return self._file.read(1)[0]

    def children(self, number: int, low: int = -MAX_ROWID, high: int = MAX_ROWID) -> list[Child]:
        """Return the pages below an interior page of a table or an index, in order."""
        page = self.page(number)
        children: list[Child] = []
        in_table = self.kind(number) == TABLE_INTERIOR
        after = low
        for offset in self._offsets(page, _header(number), 12):
            key = _signed(_varint(page, offset + 4)[0]) if in_table else high
            children.append(Child(int.from_bytes(page[offset : offset + 4], "big"), after, key))
            after = key + 1 if in_table else low
        right = _header(number) + 8
        return [*children, Child(int.from_bytes(page[right : right + 4], "big"), after, high)]

    def cells(self, number: int) -> Iterator[Cell]:
        """Yield the rows of a table's leaf page whose rowids can be read."""
        page = self.page(number)
        for offset in self._offsets(page, _header(number), 8):
            size, after = _varint(page, offset)
            rowid, start = _varint(page, after)
            yield Cell(_signed(rowid), number, start, size)

    def row(self, cell: Cell) -> Values | None:
        """Return the stored columns of a row, which may be fewer than the table has; None if it is damaged."""
        most = self.size - 35
        payload = self._payload(self.page(cell.page), cell.offset, cell.size, most)
        return None if payload is None else record(payload)

    def entries(self, number: int) -> Iterator[Values | None]:
        """Yield the entries of an index page: the indexed columns, then the rowid; None for a damaged one."""
        page = self.page(number)
        interior = self.kind(number) == INDEX_INTERIOR
        most = (self.size - 12) * 64 // 255 - 23
        for offset in self._offsets(page, _header(number), 12 if interior else 8):
            size, start = _varint(page, offset + (4 if interior else 0))
            payload = self._payload(page, start, size, most)
            entry = None if payload is None else record(payload)
            yield entry if entry and isinstance(entry[-1], int) else None

    def _offsets(self, page: bytes, header: int, first: int) -> Iterator[int]:
        if len(page) < self.size:
            return
        count = int.from_bytes(page[header + 3 : header + 5], "big")
        start = header + first
        for position in range(start, min(start + 2 * count, self.size - 1), 2):
            yield int.from_bytes(page[position : position + 2], "big") & (self.size - 1)

    def _payload(self, page: bytes, start: int, size: int, most: int) -> bytes | None:
        """Return a cell's payload, assembled from its overflow pages."""
        if size > self.count * self.size:
            return None
        local = size
        if size > most:
            least = (self.size - 12) * 32 // 255 - 23
            local = least + (size - least) % (self.size - 4)
            local = local if local <= most else least
        parts = [page[start : start + local]]
        missing = size - local
        following = int.from_bytes(page[start + local : start + local + 4], "big")
        while missing > 0:
            overflow = self.page(following)
            if not overflow:
                return None
            parts.append(overflow[4 : 4 + missing])
            missing -= len(parts[-1])
            following = int.from_bytes(overflow[:4], "big")
        payload = b"".join(parts)
        return payload if len(payload) == size else None


def record(payload: bytes) -> Values | None:
    """Return the columns of a record; None if it does not match its own header."""
    end, position = _varint(payload, 0)
    kinds = []
    while position < min(end, len(payload)):
        kind, position = _varint(payload, position)
        kinds.append(kind)
    values: list[Any] = []
    for kind in kinds:
        if kind in (0, 8, 9):
            values.append(None if kind == 0 else kind - 8)
            continue
        size = _INTEGER_BYTES.get(kind) or (8 if kind == 7 else (kind - 12) // 2)
        stored = payload[position : position + size]
        if kind in (10, 11) or len(stored) < size:
            return None
        position += size
        if kind in _INTEGER_BYTES:
            values.append(int.from_bytes(stored, "big", signed=True))
        elif kind == 7:
            values.append(struct.unpack(">d", stored)[0])
        else:
            values.append(text(stored) if kind % 2 else stored)
    return tuple(values) if position == len(payload) and values else None


def _header(number: int) -> int:
    return 100 if number == 1 else 0


def _signed(value: int) -> int:
    return value - (1 << 64) if value > MAX_ROWID else value


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Return a varint of one to nine bytes and its end; a truncated one reads as if zeros followed."""
    value = 0
    for place in range(position, position + 8):
        byte = data[place] if place < len(data) else 0
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + 1
    return value << 8 | (data[position + 8] if position + 8 < len(data) else 0), position + 9
