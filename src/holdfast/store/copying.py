"""Copies rows from one engine to the other, driven by the catalogs, so that a new table needs no change here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import apsw

from holdfast.errors import StoreError
from holdfast.lazy_dataclass import dataclass
from holdfast.store.damaged_text import REPLACEMENT, DamagedText, byte_faithful, values
from holdfast.store.migrations import Migration
from holdfast.store.sqlite import migrate

if TYPE_CHECKING:
    from holdfast.store.postgres_server import Connection

Progress = Callable[[float, str], None]
"""Callback for progress: the fraction done, from 0 to 1, and the current step."""

ROWS_AT_ONCE = 200
LEDGER_TABLE = "schema_migrations"
SEARCH_INDEXES = ("thoughts_fts", "history_fts")
"""Tables that are filled from other tables and never copied."""


def no_progress(done: float, doing: str) -> None:
    """Ignore the progress."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table and its stored (not generated) columns."""

    name: str
    columns: tuple[str, ...]

    @property
    def quoted(self) -> str:
        """The name, quoted for SQL."""
        return quote(self.name)

    @property
    def quoted_columns(self) -> str:
        """The columns, quoted for SQL."""
        return ", ".join(quote(column) for column in self.columns)


def quote(name: str) -> str:
    """Quote an identifier from the catalog for SQL."""
    return '"' + name.replace('"', '""') + '"'


def sqlite_tables(connection: apsw.Connection) -> list[Table]:
    """Return the ordinary tables of a SQLite file, without search indexes and their shadow tables."""
    names = connection.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
        " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
    ).fetchall()
    return [Table(str(name), _sqlite_columns(connection, str(name))) for (name,) in names]


def _sqlite_columns(connection: apsw.Connection, table: str) -> tuple[str, ...]:
    rows = connection.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0 ORDER BY cid", (table,))
    return tuple(str(name) for (name,) in rows.fetchall())


def sqlite_counts(connection: apsw.Connection) -> dict[str, int]:
    """Return the number of rows of each table."""
    counts = {}
    for table in sqlite_tables(connection):
        sql = f"SELECT count(*) FROM {table.quoted}"  # noqa: S608 - a name from the catalog
        counts[table.name] = int(str(connection.execute(sql).fetchall()[0][0]))
    return counts


def empty_like(connection: apsw.Connection, steps: list[Migration]) -> None:
    """Create the tables of `steps` in a new SQLite file, without the rows that the steps insert."""
    migrate(connection, lambda: 0, steps)
    for table in sqlite_tables(connection):
        connection.execute(f"DELETE FROM {table.quoted}")  # noqa: S608 - a name from the catalog


def rows_of_sqlite(connection: apsw.Connection, table: Table) -> Iterator[tuple[Any, ...]]:
    """Yield every row, one at a time; text that is not UTF-8 as `DamagedText`."""
    columns = byte_faithful(quote(column) for column in table.columns)
    for row in connection.execute(f"SELECT {columns} FROM {table.quoted}"):  # noqa: S608
        yield values(row)


def damaged_texts(connection: apsw.Connection) -> list[str]:
    """Return where a SQLite file holds text that is not UTF-8."""
    problems: list[str] = []
    for table in sqlite_tables(connection):
        try:  # fast path: almost always there is nothing to find
            for _ in connection.execute(f"SELECT {table.quoted_columns} FROM {table.quoted}"):  # noqa: S608
                continue
        except UnicodeDecodeError:
            for row in rows_of_sqlite(connection, table):
                problems += [_location(table, row, name) for name, value in _by_name(table, row) if _is_damaged(value)]
    return problems


def acceptable_to_postgres(
    table: Table, rows: Iterable[tuple[Any, ...]], replaced: list[str]
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows with U+FFFD for characters that PostgreSQL rejects; the changed places are added to `replaced`."""
    for row in rows:
        if any(_is_refused(value) for value in row):
            replaced += [_location(table, row, name) for name, value in _by_name(table, row) if _is_refused(value)]
            yield tuple(_replaced(value) for value in row)
        else:
            yield row


def _by_name(table: Table, row: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    return zip(table.columns, row, strict=True)


def _location(table: Table, row: tuple[Any, ...], column: str) -> str:
    """Name the location of a text by the row's first column, which is its number or id."""
    return f"{table.name}, {table.columns[0]} {_replaced(row[0])}: {column}"


def _is_damaged(value: object) -> bool:
    return isinstance(value, DamagedText)


def _is_refused(value: object) -> bool:
    return isinstance(value, DamagedText) or (isinstance(value, str) and "\0" in value)


def _replaced(value: Any) -> Any:
    readable = value.readable() if isinstance(value, DamagedText) else value
    return readable.replace("\0", REPLACEMENT) if isinstance(readable, str) else readable


def rows_into_sqlite(connection: apsw.Connection, table: Table, rows: Iterable[tuple[Any, ...]]) -> int:
    """Insert the rows; triggers fill the search index."""
    marks = ", ".join("?" * len(table.columns))
    insert = f"INSERT INTO {table.quoted} ({table.quoted_columns}) VALUES ({marks})"  # noqa: S608
    source = iter(rows)
    copied = 0
    while batch := list(islice(source, ROWS_AT_ONCE)):
        connection.executemany(insert, batch)
        copied += len(batch)
    return copied


def postgres_tables(connection: Connection, schema: str) -> dict[str, Table]:
    """Return the ordinary tables of a PostgreSQL schema."""
    rows = connection.execute(
        "SELECT c.relname AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns"
        " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid"
        " WHERE n.nspname = %s AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''"
        " GROUP BY c.relname",
        (schema,),
    ).fetchall()
    return {row["name"]: Table(row["name"], tuple(row["columns"])) for row in rows}


def rows_of_postgres(connection: Connection, table: Table) -> Iterator[tuple[Any, ...]]:
    """Yield every row through a server-side cursor, so that memory stays bounded."""
    from psycopg.rows import tuple_row

    with connection.cursor(name="copying", row_factory=tuple_row) as cursor:
        cursor.itersize = ROWS_AT_ONCE
        select = f"SELECT {table.quoted_columns} FROM {table.quoted}"  # noqa: S608
        yield from cursor.execute(select.encode())


def rows_into_postgres(connection: Connection, table: Table, rows: Iterable[tuple[Any, ...]]) -> int:
    """Load the rows with COPY."""
    copied = 0
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table.quoted} ({table.quoted_columns}) FROM STDIN".encode()) as copy,
    ):
        for row in rows:
            copy.write_row(row)
            copied += 1
    return copied


def postgres_into_sqlite(
    source: Connection, schema: str, target: apsw.Connection, progress: Progress = no_progress
) -> dict[str, int]:
    """Copy every table that the SQLite file has; other tables of the schema are not Holdfast's."""
    theirs = postgres_tables(source, schema)
    tables = sqlite_tables(target)
    counts = {}
    target.execute("PRAGMA foreign_keys = OFF")
    for done, table in enumerate(tables):
        progress(done / len(tables), table.name)
        require_same_columns(table, theirs.get(table.name))
        with target:
            counts[table.name] = rows_into_sqlite(target, table, rows_of_postgres(source, table))
    target.execute("PRAGMA foreign_keys = ON")
    return counts


def require_same_columns(ours: Table, theirs: Table | None) -> None:
    """Refuse to copy between tables that differ, because something would be left behind."""
    if theirs is None:
        raise StoreError(f"The table {ours.name} is missing from the database.")
    different = set(ours.columns) ^ set(theirs.columns)
    if different:
        raise StoreError(f"The table {ours.name} differs between the engines: {', '.join(sorted(different))}.")
