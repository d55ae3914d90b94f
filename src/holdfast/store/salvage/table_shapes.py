"""Shape of a table's rows, against which rows read from a damaged file are checked before they are kept."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from holdfast.lazy_dataclass import dataclass
from holdfast.store.copying import Table
from holdfast.store.damaged_text import DamagedText
from holdfast.store.salvage.raw_pages import Values

_KINDS = {"TEXT": (str, DamagedText), "INTEGER": (int,), "BIGINT": (int,)}


@dataclass(frozen=True, slots=True)
class Column:
    """Declaration of one column."""

    name: str
    type: str
    required: bool
    is_rowid: bool
    is_key: bool
    """Whether rows are looked up by it, or refer to others with it."""
    default: object
    """Value for rows that were written before the column existed."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of a table, in order."""

    table: Table
    columns: tuple[Column, ...]
    shortest: int
    """Minimum number of stored columns; rows written before a column was added lack it."""

    def misfit(self, row: Sequence[object]) -> str | None:
        """Return why a complete row cannot belong to this table; None if it fits."""
        for column, value in zip(self.columns, row, strict=True):
            if value is None:
                if column.required:
                    return f"{column.name} is missing"
            elif not isinstance(value, _KINDS.get(column.type, object)):
                return f"{column.name} is not of type {column.type}"
        return None

    def complete(self, rowid: int, stored: Values) -> Values | None:
        """Complete the stored columns to a row as SQLite would return it; None if it cannot belong to this table."""
        if not self.shortest <= len(stored) <= len(self.columns):
            return None
        row = [*stored, *(column.default for column in self.columns[len(stored) :])]
        for place, column in enumerate(self.columns):
            if column.is_rowid:
                if row[place] is not None:  # SQLite stores NULL in place of the rowid
                    return None
                row[place] = rowid
        return None if self.misfit(row) else tuple(row)


def shape_of(connection: apsw.Connection, table: Table) -> Shape:
    """Look up the shape of a table in an intact store."""
    rows = connection.execute(
        'SELECT name, type, "notnull", pk, dflt_value FROM pragma_table_xinfo(?) WHERE hidden = 0 ORDER BY cid',
        (table.name,),
    ).fetchall()
    asked_for = {
        str(name)
        for (name,) in connection.execute(
            'SELECT i.name FROM pragma_index_list(:table) l, pragma_index_info(l.name) i WHERE l."unique"'
            ' UNION SELECT "from" FROM pragma_foreign_key_list(:table)',
            {"table": table.name},
        )
    }
    keys = sum(bool(pk) for _, _, _, pk, _ in rows)
    columns = []
    shortest = 0
    for name, declared, required, pk, default in rows:
        is_rowid = keys == 1 and bool(pk) and declared == "INTEGER"
        value = None if default is None else connection.execute(f"SELECT {default}").fetchall()[0][0]
        columns.append(Column(str(name), str(declared), bool(required), is_rowid, name in asked_for, value))
        if required and default is None:
            shortest = len(columns)
    return Shape(table, tuple(columns), shortest)
