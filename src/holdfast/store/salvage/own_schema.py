"""Installs this program's schema in a damaged file, so that a wrong byte in the file's own schema costs nothing.

Only the root page of each table is taken from the file: from its schema pages where they can be read, otherwise the
root that a new store has.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import apsw

from holdfast.lazy_dataclass import dataclass
from holdfast.store.copying import sqlite_tables
from holdfast.store.files import remove_database
from holdfast.store.migrations import Migration, load
from holdfast.store.salvage.page_map import Walk
from holdfast.store.salvage.raw_pages import INDEX_KINDS, TABLE_KINDS, TABLE_LEAF, RawPages
from holdfast.store.salvage.table_shapes import Shape, shape_of
from holdfast.store.sqlite import applied_migrations, migrate

SAMPLED_ROWS = 20
SCHEMA_TYPES = ("table", "index", "trigger", "view")


@dataclass(frozen=True, slots=True)
class Tree:
    """A table or an index of the schema."""

    type: str
    name: str
    table: str
    root: int
    """Its root page in a new store."""
    sql: str | None
    kinds: tuple[int, ...]
    """The page types that it uses."""
    width: int
    """Number of columns, for an index."""

    @property
    def is_partial(self) -> bool:
        """Whether it is a partial index."""
        return self.sql is not None and " WHERE " in self.sql.upper().replace("\n", " ")


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of a store after some of the migrations."""

    trees: dict[str, Tree]
    shapes: dict[str, Shape]
    """By table; only Holdfast's own tables, not the shadow tables of a search index."""
    header: bytes

    def indexes_of(self, table: str) -> list[str]:
        """Return the names of a table's indexes."""
        return [tree.name for tree in self.trees.values() if tree.type == "index" and tree.table == table]


def schema_of(scratch: Path, steps: list[Migration]) -> Schema:
    """Return the schema that `steps` create, looked up in a new store at `scratch`."""
    remove_database(scratch)
    connection = apsw.Connection(str(scratch))
    try:
        connection.execute("PRAGMA page_size = 4096")
        migrate(connection, lambda: 0, steps)
        rows = connection.execute(
            "SELECT type, name, tbl_name, rootpage, sql, (SELECT count(*) FROM pragma_index_info(s.name))"
            " FROM sqlite_schema s WHERE rootpage > 0"
        ).fetchall()
        shapes = {table.name: shape_of(connection, table) for table in sqlite_tables(connection)}
    finally:
        connection.close()
    pages = RawPages(scratch, 4096)
    try:
        trees = {}
        for kind, name, table, root, sql, width in rows:
            kinds = TABLE_KINDS if pages.kind(int(str(root))) in TABLE_KINDS else INDEX_KINDS
            text = None if sql is None else str(sql)
            trees[str(name)] = Tree(str(kind), str(name), str(table), int(str(root)), text, kinds, int(str(width)))
        return Schema(trees, shapes, pages.page(1)[:100])
    finally:
        pages.close()
        remove_database(scratch)


def schema_problem(connection: apsw.Connection, known: list[Migration] | None = None) -> str | None:
    """Return how a file's schema differs from what its migrations create; a flipped bit may leave valid SQL."""
    applied = {number for number, _, _ in applied_migrations(connection)}
    steps = [step for step in (load() if known is None else known) if step.number in applied]
    if len(steps) < len(applied):
        return None  # written by a newer program; opening it gives a clear error
    new = apsw.Connection(":memory:")
    try:
        migrate(new, lambda: 0, steps)
        wanted = {table.name: shape_of(new, table) for table in sqlite_tables(new)}
    finally:
        new.close()
    shapes = {table.name: shape_of(connection, table) for table in sqlite_tables(connection)}
    different = sorted(name for name, shape in wanted.items() if shapes.get(name) != shape)
    return f"the schema of {', '.join(different)} is not the one that was created" if different else None


def find_roots(pages: RawPages, schema: Schema) -> dict[str, int]:
    """Return the root pages of the tables and indexes that can be found in a damaged file."""
    roots: dict[str, int] = {}
    reached = [child.page for child in Walk(pages, 1, is_table=True).leaves()]

    def listed() -> Iterator[tuple[str, int]]:
        for number in reached:
            yield from _entries(pages, schema, number)

    def listed_on_stray_pages() -> Iterator[tuple[str, int]]:
        for number in range(2, pages.count + 1):
            if pages.kind(number) == TABLE_LEAF and number not in reached and _looks_like_schema(pages, number):
                yield from _entries(pages, schema, number)

    def at_default_roots() -> Iterator[tuple[str, int]]:
        return ((name, schema.trees[name].root) for name in schema.shapes)

    for candidates in (listed, listed_on_stray_pages, at_default_roots):
        # A root with another table's rows below it must not be assigned to a table of which nothing is readable.
        for require_rows in (True, False):
            if schema.shapes.keys() <= roots.keys():
                break
            for name, root in candidates():
                free = name not in roots and root not in roots.values()
                if free and _is_root_of(pages, schema, name, root, require_rows=require_rows):
                    roots[name] = root
    return roots


def _entries(pages: RawPages, schema: Schema, number: int) -> Iterator[tuple[str, int]]:
    """Yield name and root of our tables and indexes that a schema page lists."""
    for cell in pages.cells(number):
        row = pages.row(cell)
        if row is not None and len(row) == 5 and isinstance(row[1], str) and isinstance(row[3], int):
            tree = schema.trees.get(row[1])
            if tree is not None and tree.type == row[0]:
                yield tree.name, row[3]


def _looks_like_schema(pages: RawPages, number: int) -> bool:
    rows = (pages.row(cell) for cell in islice(pages.cells(number), SAMPLED_ROWS))
    return any(row is not None and len(row) == 5 and row[0] in SCHEMA_TYPES for row in rows)


def _is_root_of(pages: RawPages, schema: Schema, name: str, root: int, *, require_rows: bool) -> bool:
    """Return whether this page can be the root of that table or index: its type fits, and so do the rows below it."""
    if root < 2 or pages.kind(root) not in schema.trees[name].kinds:
        return False
    shape = schema.shapes.get(name)
    if shape is None:
        return True
    looked_at = 0
    for child in Walk(pages, root, is_table=True).leaves():
        for cell in pages.cells(child.page):
            row = pages.row(cell)
            looked_at += 1
            if row is not None and shape.complete(cell.rowid, row) is not None:
                return True
        if looked_at >= SAMPLED_ROWS:
            return False
    return not require_rows


def install(path: Path, page_size: int, schema: Schema, roots: dict[str, int]) -> None:
    """Give the file at `path` an empty schema page, then have SQLite itself write our schema into it."""
    pages = path.stat().st_size // page_size
    header = bytearray(schema.header)
    header[16:18] = (page_size if page_size < 65536 else 1).to_bytes(2, "big")
    header[18:20] = b"\1\1"  # no write-ahead log
    header[28:32] = pages.to_bytes(4, "big")
    header[32:40] = bytes(8)  # no free pages: new pages are appended after all others
    header[92:96] = header[24:28]
    empty = bytes([TABLE_LEAF, 0, 0, 0, 0]) + (page_size % 65536).to_bytes(2, "big") + b"\0"
    with path.open("r+b") as file:
        file.write((header + empty).ljust(page_size, b"\0"))
        file.truncate(pages * page_size)
    connection = apsw.Connection(str(path))
    try:
        connection.execute("PRAGMA journal_mode = OFF").fetchall()
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA writable_schema = ON")
        wanted = [tree for tree in schema.trees.values() if tree.table in schema.shapes and tree.table in roots]
        with connection:
            for tree in wanted:
                if tree.name in roots:
                    connection.execute(
                        "INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)",
                        (tree.type, tree.name, tree.table, roots[tree.name], tree.sql),
                    )
    finally:
        connection.close()
