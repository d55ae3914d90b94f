"""Temporary database for the rows of an archive, so that they need not fit into memory.

The file is unlinked as soon as it is open. Whatever happens, nothing of it is left.
"""
# ruff: noqa: S608 - table and column names are this program's own

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self

import apsw

from holdfast.handoff.tables import TABLES
from holdfast.store import Row

INDEXES = {
    "sessions": ("id",),
    "branches": ("session_id", "branch_id"),
    "thoughts": ("session_id", "number"),
    "session_links": ("session_id", "linked_id"),
    "protocol_runs": ("row_id",),
    "protocol_gates": ("run", "gate"),
    "protocol_evidence": ("run",),
    "protocol_violations": ("run",),
    "bridge_messages": ("target", "id"),
    "bridge_updates": ("target",),
    "bridge_tasks": ("target",),
    "conversations": ("id",),
    "asks": ("conversation_id",),
    "notices": ("to_team",),
    "ledgers": ("session_id",),
}
"""The columns by which rows of each table are looked up."""
CACHE_KIB = 8_192


class Staged:
    """The rows of an archive, by table, in the order in which they came."""

    def __init__(self) -> None:
        self._db = apsw.Connection("")
        for setting in ("journal_mode = OFF", "synchronous = OFF", "temp_store = FILE", f"cache_size = -{CACHE_KIB}"):
            self._db.execute(f"PRAGMA {setting}")
        for name, table in TABLES.items():
            self._db.execute(f"CREATE TABLE {name} ({_quoted(table.columns)})")
        self._db.execute("BEGIN")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close(True)

    def add(self, table: str, rows: Iterable[Row]) -> None:
        """Add rows to a table."""
        columns = list(TABLES[table].columns)
        marks = ", ".join("?" * len(columns))
        self._db.executemany(
            f"INSERT INTO {table} VALUES ({marks})", (tuple(row[name] for name in columns) for row in rows)
        )

    def complete(self) -> None:
        """Create the indexes; no rows are added after this."""
        for table, columns in INDEXES.items():
            self._db.execute(f"CREATE INDEX {table}_by ON {table} ({_quoted(columns)})")

    def clear(self) -> None:
        """Remove all rows."""
        for table in TABLES:
            self._db.execute(f"DELETE FROM {table}")

    def rows(self, table: str, **where: Any) -> Iterator[Row]:
        """Yield the rows of a table whose columns have these values."""
        columns = TABLES[table].columns
        wanted = " AND ".join(f'"{name}" = :{name}' for name in where) or "1"
        rows = self._db.execute(f"SELECT {_quoted(columns)} FROM {table} WHERE {wanted} ORDER BY rowid", where)
        for values in rows:
            yield dict(zip(columns, values, strict=True))

    def values(self, table: str, column: str) -> Iterator[Any]:
        """Yield the values of a column, each once."""
        for (value,) in self._db.execute(f'SELECT DISTINCT "{column}" FROM {table}'):
            yield value

    def count(self, table: str, **where: Any) -> int:
        wanted = " AND ".join(f'"{name}" = :{name}' for name in where) or "1"
        (number,) = next(iter(self._db.execute(f"SELECT count(*) FROM {table} WHERE {wanted}", where)))
        return int(number)

    def has_duplicates(self, table: str, columns: Iterable[str]) -> bool:
        """Return whether two rows have the same values in these columns."""
        duplicates = self._db.execute(f"SELECT 1 FROM {table} GROUP BY {_quoted(columns)} HAVING count(*) > 1 LIMIT 1")
        return next(iter(duplicates), None) is not None

    def has_dangling(self, table: str, column: str, parent: str, key: str) -> bool:
        """Return whether a row refers to one that is missing."""
        rows = self._db.execute(f'SELECT 1 FROM {table} WHERE "{column}" NOT IN (SELECT "{key}" FROM {parent}) LIMIT 1')
        return next(iter(rows), None) is not None

    def mark_damage(self, session_id: str, damage: str) -> None:
        """Set the damage of a reasoning session."""
        self._db.execute("UPDATE sessions SET damage = ? WHERE id = ?", (damage, session_id))


def _quoted(columns: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)
