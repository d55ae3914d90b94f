"""PostgreSQL databases that tests use one after the other: clearing one takes a fifth of the time of making one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql
from tests.postgres import PostgresServer, fresh_database

Connection = psycopg.Connection[tuple[Any, ...]]

_SHAPE = """
SELECT (SELECT count(*) FROM pg_class), (SELECT max(oid) FROM pg_class), (SELECT count(*) FROM pg_attribute),
    (SELECT count(*) FROM pg_constraint), (SELECT count(*) FROM pg_index), (SELECT count(*) FROM pg_trigger),
    (SELECT count(*) FROM pg_proc), (SELECT count(*) FROM pg_namespace), (SELECT count(*) FROM pg_attrdef),
    (SELECT count(*) FROM pg_db_role_setting)
"""
"""Changes with whatever a test adds to the tables themselves, takes away from them or puts beside them."""
_TABLES = """
SELECT relname, pg_relation_size(oid) > 0 FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname
"""
_OTHERS = """
SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


@dataclass
class _Database:
    """One of them, and what it was like when it was new."""

    url: str
    shape: tuple[Any, ...] | None
    rows: dict[str, bytes]
    """The tables that are not empty in a new store, with what is in them."""


@dataclass
class Databases:
    """Databases of one server, each like a new one for every test."""

    server: PostgresServer
    free: list[_Database] = field(default_factory=list)

    def take(self) -> _Database:
        """One that nobody else uses, with Holdfast's empty tables in it."""
        if self.free:
            return self.free.pop()
        url = fresh_database(self.server, keep=True)
        with psycopg.connect(url, autocommit=True) as connection:
            return _Database(url, _shape(connection), {name: _content(connection, name) for name in _used(connection)})

    def give_back(self, used: _Database) -> None:
        """Make it as it was; where its tables themselves were changed, nobody gets it again."""
        with psycopg.connect(used.url, autocommit=True) as connection:
            connection.execute(_OTHERS)
            if _shape(connection) != used.shape:
                return
            filled = [name for name in _used(connection) if name not in used.rows]
            changed = [name for name, rows in used.rows.items() if _content(connection, name) != rows]
            if filled or changed:
                names = sql.SQL(", ").join(map(sql.Identifier, filled + changed))
                connection.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY CASCADE").format(names))
            for name, rows in used.rows.items():
                if _content(connection, name) != rows:
                    _write(connection, name, rows)
        self.free.append(used)


def _shape(connection: Connection) -> tuple[Any, ...] | None:
    return connection.execute(_SHAPE).fetchone()


def _used(connection: Connection) -> list[str]:
    """The tables in which something is, or was: a row that was deleted or rolled back leaves its place."""
    return [name for name, used in connection.execute(_TABLES).fetchall() if used]


def _content(connection: Connection, name: str) -> bytes:
    with connection.cursor().copy(sql.SQL("COPY {} TO STDOUT").format(sql.Identifier(name))) as copy:
        return b"".join(bytes(part) for part in copy)


def _write(connection: Connection, name: str, rows: bytes) -> None:
    with connection.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(name))) as copy:
        copy.write(rows)
