"""Seeded damages to a database file, and a row-by-row reader that says what SQLite can still read of it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
from tests.contract.conftest import PAGE

Rows = dict[str, dict[int, tuple[Any, ...]]]
"""By table and row number; each column as its type and its bytes."""


def _hits(data: bytearray, chance: random.Random, schema: list[int]) -> None:
    for _ in range(chance.randint(1, 12)):
        start = chance.randrange(len(data) - 64)
        data[start : start + 64] = chance.randbytes(64)


def _flips(data: bytearray, chance: random.Random, schema: list[int]) -> None:
    for _ in range(chance.randint(1, 40)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _zeroed_pages(data: bytearray, chance: random.Random, schema: list[int]) -> None:
    for _ in range(chance.randint(1, 4)):
        page = chance.randrange(len(data) // PAGE)
        data[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)


def _schema_flips(data: bytearray, chance: random.Random, schema: list[int]) -> None:
    for _ in range(chance.randint(1, 6)):
        page = chance.choice(schema)
        data[(page - 1) * PAGE + chance.randrange(PAGE)] ^= 1 << chance.randrange(8)


def _cut_off(data: bytearray, chance: random.Random, schema: list[int]) -> None:
    del data[chance.randrange(len(data) // 5, len(data)) :]


def _page_headers(data: bytearray, chance: random.Random, schema: list[int]) -> None:
    """Hit the beginnings of pages, where one byte costs SQLite the whole page, and pages that lead to others."""
    inner = [n for n in range(len(data) // PAGE) if data[n * PAGE] in (2, 5)]
    for _ in range(chance.randint(1, 4)):
        page = chance.choice(inner) if inner and chance.random() < 0.5 else chance.randrange(len(data) // PAGE)
        start = page * PAGE + chance.randrange(40)
        data[start : start + 4] = chance.randbytes(4)


KINDS = (_hits, _flips, _hits, _zeroed_pages, _schema_flips, _cut_off, _page_headers)


def damage(path: Path, seed: int) -> str:
    """Damage the file as this seed says; returns how."""
    chance = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    data = bytearray(path.read_bytes())
    kind(data, chance, schema_pages(path))
    path.write_bytes(data)
    return kind.__name__.strip("_")


def schema_pages(path: Path) -> list[int]:
    """The pages of the file's own schema."""
    connection = apsw.Connection(str(path))
    try:
        found = connection.execute("SELECT pageno FROM dbstat WHERE name = 'sqlite_schema'").fetchall()
        return [int(str(number)) for (number,) in found]
    finally:
        connection.close()


def with_schema_of(whole: Path, damaged: Path, target: Path) -> None:
    """Copy the damaged file with the schema's pages of the one that is whole, so that SQLite can be asked."""
    shutil.copyfile(damaged, target)
    with whole.open("rb") as source, target.open("r+b") as file:
        for number in schema_pages(whole):
            source.seek((number - 1) * PAGE)
            file.seek((number - 1) * PAGE)
            file.write(source.read(PAGE))
        pages = file.seek(0, 2) // PAGE
        file.truncate(pages * PAGE)
        file.seek(28)
        file.write(pages.to_bytes(4, "big"))


def tables(connection: apsw.Connection) -> dict[str, str]:
    """Our tables, and for each the select list that gives every column as it is stored."""
    names = connection.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite%'"
    ).fetchall()
    found = {}
    for (name,) in names:
        columns = connection.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", (name,)).fetchall()
        found[str(name)] = ", ".join(f"typeof({column}), CAST({column} AS BLOB)" for (column,) in columns)
    return found


def every_row(path: Path) -> Rows:
    """What a whole file holds."""
    connection = apsw.Connection(str(path))
    try:
        return {
            name: {
                int(str(rowid)): tuple(row)
                for rowid, *row in connection.execute(f"SELECT rowid, {columns} FROM {name} NOT INDEXED")
            }
            for name, columns in tables(connection).items()
        }
    finally:
        connection.close()


def readable_rows(path: Path, existed: Rows) -> Rows:
    """What SQLite can read of a damaged file with a whole schema: by row number, by every index, and from both ends."""
    connection = apsw.Connection(str(path))
    try:
        found: Rows = {}
        for name, columns in tables(connection).items():
            found[name] = dict(_scanned(connection, f"SELECT rowid, {columns} FROM {name} NOT INDEXED ORDER BY rowid"))
            numbers = set(existed[name]) | set(_indexed(connection, name))
            for number in numbers:
                sql = f"SELECT rowid, {columns} FROM {name} NOT INDEXED WHERE rowid = {number}"
                found[name].update(_scanned(connection, sql))
        return found
    finally:
        connection.close()


def _scanned(connection: apsw.Connection, sql: str) -> Iterator[tuple[int, tuple[Any, ...]]]:
    for order in ("", " DESC") if sql.endswith("rowid") else ("",):
        try:
            for rowid, *row in connection.execute(sql + order):
                yield int(str(rowid)), tuple(row)
        except apsw.Error:
            continue


def _indexed(connection: apsw.Connection, table: str) -> Iterator[int]:
    indexes = connection.execute("SELECT name FROM pragma_index_list(?) WHERE NOT partial", (table,)).fetchall()
    for (index,) in indexes:
        columns = [str(c) for (c,) in connection.execute("SELECT name FROM pragma_index_info(?)", (index,)).fetchall()]
        for order in ("", " DESC"):
            ordered = ", ".join(f"{column}{order}" for column in columns)
            sql = f"SELECT rowid, 0 FROM {table} INDEXED BY {index} ORDER BY {ordered}"
            try:
                for rowid, _ in connection.execute(sql):
                    yield int(str(rowid))
            except apsw.Error:
                continue
