"""Maps the pages of a damaged file: those that belong to a tree, free pages, and stray leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from holdfast.lazy_dataclass import dataclass
from holdfast.store.salvage.raw_pages import (
    INDEX_INTERIOR,
    INDEX_KINDS,
    MAX_ROWID,
    TABLE_INTERIOR,
    TABLE_KINDS,
    TABLE_LEAF,
    Child,
    RawPages,
)

SQLITE_MAGIC = b"SQLite format 3\0"
Range = tuple[int, int]
EVERYTHING = (-MAX_ROWID, MAX_ROWID)


@dataclass(slots=True)
class Walk:
    """A walk through one tree that skips damaged pages."""

    pages: RawPages
    root: int
    is_table: bool
    gaps: list[Range] = field(default_factory=list)
    """Rowid ranges whose page cannot be read; complete when the walk is over."""

    def leaves(self) -> Iterator[Child]:
        """Yield the pages that hold entries, in order: a table's leaves, and every page of an index."""
        kinds = TABLE_KINDS if self.is_table else INDEX_KINDS
        seen: set[int] = set()
        waiting = [Child(self.root, *EVERYTHING)]
        while waiting:
            child = waiting.pop()
            kind = self.pages.kind(child.page)
            if kind not in kinds or child.page in seen:
                self.gaps.append((child.low, child.high))
                continue
            seen.add(child.page)
            if kind in (TABLE_INTERIOR, INDEX_INTERIOR):
                waiting += reversed(self.pages.children(child.page, child.low, child.high))
            if kind != TABLE_INTERIOR:
                yield child


def mark_tree(pages: RawPages, root: int, taken: bytearray) -> None:
    """Mark all pages of a tree, except overflow pages, which never look like a leaf."""
    kind = pages.kind(root)
    kinds = TABLE_KINDS if kind in TABLE_KINDS else INDEX_KINDS if kind in INDEX_KINDS else ()
    waiting = [root]
    while waiting:
        number = waiting.pop()
        if pages.kind(number) in kinds and not taken[number]:
            taken[number] = 1
            if pages.kind(number) in (TABLE_INTERIOR, INDEX_INTERIOR):
                waiting += [child.page for child in pages.children(number)]


def free_pages(pages: RawPages, taken: bytearray) -> set[int] | None:
    """Return the free pages; None if the freelist cannot be trusted."""
    header = pages.page(1)[:100]
    if not header.startswith(SQLITE_MAGIC):
        return None
    everything, trunk, expected = (int.from_bytes(header[place : place + 4], "big") for place in (28, 32, 36))
    free: set[int] = set()
    while trunk:
        page = pages.page(trunk)
        count = int.from_bytes(page[4:8], "big")
        if not page or count > pages.size // 4 - 2:
            return None
        listed = [trunk, *(int.from_bytes(page[place : place + 4], "big") for place in range(8, 8 + 4 * count, 4))]
        for number in listed:
            # A page that is also in use, or listed twice, shows that the list is damaged.
            if not 2 <= number <= everything or number in free or (number < len(taken) and taken[number]):
                return None
            free.add(number)
        trunk = int.from_bytes(page[:4], "big")
    return free if len(free) == expected else None


def stray_leaves(pages: RawPages, roots: list[int]) -> tuple[list[int], int]:
    """Return table leaf pages that neither a tree nor the freelist refers to: the page above them is damaged.

    A free page may hold deleted rows, which must not come back: a forgotten text, a delivered message. So if the
    freelist cannot be trusted no page is returned, and the second number says how many there may be.
    """
    taken = bytearray(pages.count + 1)
    for root in (1, *roots):
        mark_tree(pages, root, taken)
    strays = [n for n in range(2, pages.count + 1) if not taken[n] and pages.kind(n) == TABLE_LEAF]
    free = free_pages(pages, taken) if strays else set()
    return ([], len(strays)) if free is None else ([number for number in strays if number not in free], 0)
