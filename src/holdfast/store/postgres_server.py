"""The PostgreSQL server behind a URL: connections, schema, migrations, and translated errors."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import psycopg
from psycopg import errors as refusals
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg.types.numeric import NumericLoader
from psycopg.types.string import StrDumper

from holdfast.errors import BadInput, StoreError, StoreUnreachable
from holdfast.store import Row
from holdfast.store.migrations import LEDGER, Migration, load, pending
from holdfast.store.postgres_connection import Backend, WatchedConnection
from holdfast.version import __version__

CONNECT_SECONDS = 10
PROBE_SECONDS = 2
"""How long the server has to say whether it is still working on a statement; libpq allows no shorter limit."""
TCP = {
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8000,
}
"""When the client gives a connection up: 8 s after unacknowledged data, 11 s after the last traffic of an idle one."""

Connection = psycopg.Connection[Row]

# The server must notice a lost client as well: until then it holds the locks of that client's transaction.
LIFE = "pg_postmaster_start_time() || '/' || coalesce((SELECT stats_reset FROM pg_stat_bgwriter)::text, '')"
"""Changes when the server restarts, or recovers after one of its processes crashed."""
_INTRODUCE = f"""
SELECT pid, backend_start AS started, {LIFE} AS life, set_config('tcp_keepalives_idle', '10', false),
    set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '3', false),
    set_config('tcp_user_timeout', '15000', false)
FROM pg_stat_activity WHERE pid = pg_backend_pid()
"""  # noqa: S608 - put together from constants alone
# An answer may be in transit for a moment; a backend that has been idle for longer never got the statement.
_IS_WORKING = """
SELECT 1 FROM pg_stat_activity WHERE pid = %s AND backend_start = %s
    AND (state NOT LIKE 'idle%%' OR clock_timestamp() - state_change < interval '1 second')
"""
_TERMINATE = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %s AND backend_start = %s"


class _NumberLoader(NumericLoader):
    """Loads sums and averages as SQLite returns them: whole numbers as int, others as float."""

    def load(self, data: Any) -> Any:
        value: Decimal = super().load(data)
        return int(value) if value == value.to_integral_value() else float(value)


class Server:
    """Address of the database; describes it and its errors without the password."""

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            self._parts = conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            # The parser quotes the text it could not read, and that may be the password.
            raise BadInput(
                "database URL",
                "is not a PostgreSQL URL",
                recovery="Write it as postgresql://user:password@host:5432/database.",
            ) from None

    def settings(self, connect_seconds: int = CONNECT_SECONDS) -> dict[str, Any]:
        """Return the connection parameters; those in the URL take precedence."""
        limits = {"connect_timeout": connect_seconds, **TCP}
        ours = {name: value for name, value in limits.items() if name not in self._parts}
        return {"autocommit": True, "row_factory": dict_row, **ours}

    @staticmethod
    def configure(connection: psycopg.Connection[Any]) -> None:
        """Make values look as they do on SQLite."""
        connection.adapters.register_dumper(str, StrDumper)
        connection.adapters.register_loader("numeric", _NumberLoader)

    def connect(self, seconds: int = CONNECT_SECONDS) -> WatchedConnection:
        """Open a connection outside the pool; the server has `seconds` to accept it."""
        try:
            connection = self._connect(seconds)
        except psycopg.OperationalError as error:
            # `from None`: the cause's text may contain the password, so only its cleaned form is kept.
            raise self.unreachable(self.without_password(error)) from None
        connection.silence = WatchedConnection.silence
        connection.still_works = self._still_works
        return connection

    def _connect(self, seconds: int) -> WatchedConnection:
        connection = WatchedConnection.connect(self.url, **self.settings(seconds))
        connection.silence = seconds
        connection.made = time.monotonic()
        try:
            row = connection.execute(_INTRODUCE, prepare=False).fetchone()
        except BaseException:
            connection.close()
            raise
        if row is not None:
            connection.backend = Backend(row["pid"], row["started"], row["life"])
        self.configure(connection)
        return connection

    def _still_works(self, connection: WatchedConnection) -> bool:
        """Return whether the server is up and working on this connection's statement; it may be waiting for a lock."""
        backend = connection.backend
        if backend is None:
            return False
        try:
            with self._connect(PROBE_SECONDS) as asking:
                return asking.execute(_IS_WORKING, (backend.pid, backend.started)).fetchone() is not None
        except psycopg.OperationalError as error:
            return "FATAL:" in str(error)  # it refused the connection, so it is up (too many connections, for example)

    @staticmethod
    def terminate_backend(connection: Connection, backend: Backend) -> None:
        """Terminate the backend of a lost connection, which may still hold locks."""
        with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
            connection.execute(_TERMINATE, (backend.pid, backend.started))

    def __str__(self) -> str:
        parts = self._parts
        where = parts.get("host") or parts.get("hostaddr") or "the local server"
        port = f":{parts['port']}" if parts.get("port") else ""
        return f"{where}{port}, database {parts.get('dbname') or 'of the same name as the user'}"

    def without_password(self, error: BaseException | str) -> str:
        """Return the error's first line without the password, safe to show and log."""
        text = (str(error).strip() or type(error).__name__).splitlines()[0]
        password = self._parts.get("password")
        return text.replace(str(password), "***") if password else text

    def unreachable(self, reason: str) -> StoreUnreachable:
        """Return the error for a server that does not answer."""
        return StoreUnreachable(
            f"The PostgreSQL server cannot be reached ({self}): {reason}.",
            recovery="Check that it runs and that HOLDFAST_DATABASE_URL is right.",
        )

    def refused(self, error: psycopg.Error) -> StoreError:
        """Return the error for a server that refused the statement."""
        if isinstance(error, refusals.DiskFull):
            return StoreError(
                "The database server's disk is full; nothing was written.",
                recovery="Free disk space and repeat the call.",
            )
        return StoreError(f"The database refused: {self.without_password(error)}")


def advisory_key(schema: str, name: str) -> int:
    """Return the number of an advisory lock; these are per database, so the schema is part of it."""
    digest = hashlib.blake2b(f"{schema}\0{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def schema_of(connection: Connection, server: Server) -> str:
    """Return the schema that holds the tables, from the URL's search_path."""
    row = connection.execute("SELECT current_schema() AS name, current_setting('search_path') AS path").fetchone()
    if row is None or row["name"] is None:
        path = row["path"] if row else ""
        raise StoreError(
            f"None of the schemas in the search path ({path}) exists ({server}).",
            recovery="Create it with CREATE SCHEMA, or leave search_path out of the URL.",
        )
    return str(row["name"])


def introduction(connection: Connection) -> Any:
    """Return the user as whom we are connected, and the server's version."""
    return connection.execute("SELECT current_user AS name, current_setting('server_version') AS version").fetchone()


def applied_migrations(connection: Connection, schema: str) -> list[tuple[int, str, str]]:
    """Return (number, name, program) of every migration applied to this schema; empty for a new one."""
    result = connection.execute(
        "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = 'schema_migrations'", (schema,)
    ).fetchone()
    if result is None:
        return []
    rows = connection.execute("SELECT number, name, program FROM schema_migrations ORDER BY number").fetchall()
    return [(row["number"], row["name"], row["program"]) for row in rows]


def migrate(
    connection: Connection,
    schema: str,
    known: list[Migration] | None = None,
    before_migration: Callable[[Connection, Migration], None] | None = None,
) -> None:
    """Apply the pending migrations, each in its own transaction, under a lock against other daemons."""
    lock = advisory_key(schema, "migrations")
    connection.execute("SELECT pg_advisory_lock(%s)", (lock,))
    try:
        applied = applied_migrations(connection, schema)
        steps = pending(applied, load() if known is None else known)
        if steps and applied and before_migration is not None:
            before_migration(connection, steps[0])
        for step in steps:
            with connection.transaction():
                connection.execute(LEDGER)
                connection.execute(step.scripts["postgres"].encode())
                connection.execute(
                    "INSERT INTO schema_migrations (number, name, program, applied_at)"
                    " VALUES (%s, %s, %s, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)",
                    (step.number, step.name, __version__),
                )
    finally:
        if not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s)", (lock,))
