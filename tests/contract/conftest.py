"""One place for a store per engine, so that every promise of the store is tested on both."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.contract.bridge_desk import Agent, Desk
from tests.postgres import PostgresServer, fresh_database

from holdfast.store import Store
from holdfast.store.postgres import PostgresStore
from holdfast.store.sqlite import SqliteStore, system_clock


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
            return SqliteStore.open(self.path, clock=lambda: system_clock() + self.shift, **options)
        return PostgresStore.open(self.url, clock_offset=lambda: self.shift, **options)


@pytest.fixture
def postgres_place(postgres: PostgresServer, tmp_path: Path) -> Place:
    return Place("postgres", tmp_path, fresh_database(postgres))


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
