"""One place for a store per engine, so that every promise of the store is tested on both."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.agents.echo import registered
from tests.contract.bridge_desk import Agent, Desk
from tests.contract.databases import Databases
from tests.postgres import PostgresServer

from holdfast.store import Store
from holdfast.store import postgres as postgres_module
from holdfast.store.migrations import load
from holdfast.store.postgres import PostgresStore
from holdfast.store.sqlite import SqliteStore, connect, migrate, system_clock


@pytest.fixture(autouse=True)
def echo_agent() -> Iterator[None]:
    """The agent that teams of these tests run."""
    with registered():
        yield


@dataclass
class Place:
    """Where a test's store is; opening it twice opens the same one."""

    engine: str
    home: Path
    url: str
    shift: int = 0
    """Milliseconds that the store's clock is ahead."""

    @property
    def path(self) -> Path:
        return self.home / "holdfast.db"

    def open(self, **options: Any) -> Store:
        if self.engine == "sqlite":
            if not options and not self.path.exists():
                self.path.write_bytes(_new_store())
            return SqliteStore.open(self.path, clock=lambda: system_clock() + self.shift, **options)
        return PostgresStore.open(self.url, clock_offset=lambda: self.shift, **options)


@cache
def _new_store() -> bytes:
    """The file of a store with nothing in it: writing it takes a quarter of the time of applying all migrations."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "holdfast.db"
        connection = connect(path)
        try:
            migrate(connection, system_clock, load())
        finally:
            connection.close()
        return path.read_bytes()


@pytest.fixture(scope="session", autouse=True)
def short_look() -> Iterator[None]:
    """Nobody waits half a second at the end of a test for a store's listening thread to look up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres_module, "LISTEN_SECONDS", 0.02)
        yield


@pytest.fixture(scope="session")
def databases(postgres: PostgresServer) -> Databases:
    """The databases that the tests of this worker use one after the other."""
    return Databases(postgres)


@pytest.fixture
def new_database(databases: Databases) -> Iterator[Callable[[], str]]:
    """Gives the URL of a database as if new, as often as it is called; all are cleared when the test is over."""
    taken = []

    def take() -> str:
        taken.append(databases.take())
        return taken[-1].url

    yield take
    for one in taken:
        databases.give_back(one)


@pytest.fixture
def postgres_place(new_database: Callable[[], str], tmp_path: Path) -> Place:
    return Place("postgres", tmp_path, new_database())


@pytest.fixture
def sqlite_place(tmp_path: Path) -> Place:
    return Place("sqlite", tmp_path, "")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> Place:
    found = request.getfixturevalue(f"{request.param}_place")
    assert isinstance(found, Place)
    return found


@pytest.fixture
async def desk(place: Place, tmp_path: Path) -> AsyncIterator[Desk]:
    """A target of the bridge on each engine."""
    store = place.open()
    try:
        yield Desk(store, tmp_path)
    finally:
        await store.close()


@pytest.fixture
async def agent(desk: Desk) -> Agent:
    """An agent that has started in the target's project."""
    agent = desk.agent()
    assert await agent.starts() == ""
    return agent


PAGE = 4096


def root_page(path: Path, name: str) -> int:
    """Where a table or an index begins."""
    connection = apsw.Connection(str(path))
    try:
        found = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchall()
    finally:
        connection.close()
    return int(str(found[0][0]))


def leaf_pages(path: Path, name: str) -> list[int]:
    """The leaf pages of a table, in the order of its rows."""
    connection = apsw.Connection(str(path))
    try:
        sql = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path"
        return [int(str(number)) for (number,) in connection.execute(sql, (name,)).fetchall()]
    finally:
        connection.close()


def spoil(path: Path, page: int, *, start: int = 0, size: int = 200) -> None:
    """Overwrite a part of a page, counted from 1, with what no page holds."""
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE + start)
        file.write(b"\xa5" * size)
