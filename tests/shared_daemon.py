"""Daemons that many tests share: one per worker and engine, started by the first test that needs it.

A test on a shared daemon brings a project and callers of its own and must not end, configure or damage the daemon;
one that does takes a daemon of its own (the fixtures `holdfast` and `embedded`). What a test leaves behind on a shared
daemon would be the next test's riddle, so it fails the test that left it.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import apsw
import psycopg
from tests.installation import PATIENCE, Installation, wait_until
from tests.postgres import fresh_database, postgres_server

from holdfast.cli import spelled_out

OWNERSHIP = {
    "sessions": "root_uri",
    "connections": "COALESCE(bound_root, root_uri)",
    "protocol_runs": "root",
    "protocol_trust": "root",
    "agent_sessions": "root",
    "bridge_targets": "target",
    "bridge_messages": "target",
    "conversations": "to_team",
    "api_keys": "name",
}
"""What a test may leave in the store of a shared daemon, and the column that tells whose it is."""

NOT_ON_A_SHARED_DAEMON = ("daemon stop", "daemon serve", "admin restore", "setup")


class SharedDaemons:
    """The daemons of one test worker, by engine."""

    def __init__(self) -> None:
        self._running: dict[str, Installation] = {}
        self._resources = ExitStack()

    def get(self, engine: str) -> Installation:
        """The daemon on this engine; started by the first who asks."""
        if engine not in self._running:
            folder = self._resources.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-shared-", dir="/tmp"))
            installation = Installation(Path(folder) / "holdfast")
            if engine == "postgres":
                server = self._resources.enter_context(postgres_server())
                installation.settings["HOLDFAST_DATABASE_URL"] = fresh_database(server, keep=True)
            self._resources.callback(installation.close)
            installation.serve()
            self._running[engine] = installation
        return self._running[engine]

    def close(self) -> None:
        """Stop them all; nothing of them may be left."""
        self._resources.close()


class Guest(Installation):
    """One test's view of a shared daemon: callers and names of its own, and no way to do the others harm."""

    def __init__(self, shared: Installation, place: Path) -> None:
        super().__init__(shared.home)
        self.settings = dict(shared.settings)
        self.place = place
        self.mark = uuid.uuid4().hex[:12]
        """Stands in every name of this test's that others could see."""
        self._teams = _teams_file(self.home)
        self._rows = {table: self._count(table) for table in OWNERSHIP}

    def caller(self, name: str) -> str:
        """The agent's session id behind a name in a test, told apart from that of every other test."""
        return f"{name}-{self.mark}"

    def run(
        self, *arguments: str, stdin: str = "", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run one command that does the daemon no harm."""
        command = " ".join(spelled_out(arguments))
        assert not command.startswith(NOT_ON_A_SHARED_DAEMON), _needs_its_own(f"holdfast {command}")
        return super().run(*arguments, stdin=stdin, env=env)

    def serve(self, *, another_than: int | None = None) -> None:
        """Refused: it serves already, and goes on for others."""
        raise AssertionError(_needs_its_own("serve"))

    def kill_daemon(self) -> int:
        """Refused: others are using it."""
        raise AssertionError(_needs_its_own("kill_daemon"))

    def close(self) -> None:
        """Refused: others are using it."""
        raise AssertionError(_needs_its_own("close"))

    def left_behind(self, patience: float = PATIENCE) -> list[str]:
        """What this test should have ended or kept in its own project, in words; clients have a moment to leave."""
        left: list[str] = []
        try:
            wait_until(lambda: self._ask("status")["clients"] == 0, "every client has left", patience)
        except TimeoutError:
            left.append(f"{self._ask('status')['clients']} client(s) of the shared daemon still connected")
        if (teams := _teams_file(self.home)) != self._teams:
            left.append(f"teams.json of the shared daemon: {teams!r}")
        for table, before in self._rows.items():
            foreign = self._count(table) - before
            if foreign > 0:
                left.append(f"{foreign} row(s) in {table} that are not in this test's project and do not bear its mark")
        if trouble := [loop for loop in self._ask("status")["loops"] if loop["last_error"]]:
            left.append(f"a loop of the shared daemon failed: {trouble}")
        return left

    def _count(self, table: str) -> int:
        """How many rows of a table are not this test's own; those of no place at all are nobody's."""
        owner = OWNERSHIP[table]
        query = f"SELECT {owner} FROM {table} WHERE {owner} IS NOT NULL"
        ours = str(self.place)
        return sum(1 for found in self._query(query) if ours not in found and self.mark not in found)

    def _query(self, query: str) -> list[str]:
        url = self.settings.get("HOLDFAST_DATABASE_URL")
        if url is not None:
            with psycopg.connect(url) as server:
                rows: list[Any] = server.execute(query.encode()).fetchall()
        else:
            database = apsw.Connection(str(self.home / "holdfast.db"), flags=apsw.SQLITE_OPEN_READONLY)
            try:
                database.set_busy_timeout(int(PATIENCE * 1000))
                rows = database.execute(query).fetchall()
            finally:
                database.close()
        return [str(row[0]) for row in rows]


@contextmanager
def guest(daemons: SharedDaemons, engine: str, place: Path, patience: float = PATIENCE) -> Iterator[Guest]:
    """A shared daemon for one test; fails the test that leaves something behind."""
    visiting = Guest(daemons.get(engine), place)
    yield visiting
    left = visiting.left_behind(patience)
    assert not left, "left behind for the next test: " + "; ".join(left)


@contextmanager
def nothing_left_in_this_process() -> Iterator[None]:
    """Fails the test that changes the environment or the directory of the process that all tests run in."""
    environment, folder = dict(os.environ), os.getcwd()
    yield
    changed = sorted(
        name
        for name in environment.keys() | os.environ.keys()
        if environment.get(name) != os.environ.get(name) and name != "PYTEST_CURRENT_TEST"
    )
    for name in changed:
        if name in environment:
            os.environ[name] = environment[name]
        else:
            del os.environ[name]
    moved = os.getcwd() != folder
    os.chdir(folder)
    assert not changed, f"left behind for the next test: the environment variables {', '.join(changed)}"
    assert not moved, "left behind for the next test: another working directory"


def _teams_file(home: Path) -> str:
    try:
        return (home / "teams.json").read_text()
    except FileNotFoundError:
        return ""


def _needs_its_own(what: str) -> str:
    return f"{what}: this test needs a daemon of its own; take the fixture `holdfast` or `embedded`"
