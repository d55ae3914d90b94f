"""The schema moves forward from every earlier version, after a backup, or not at all."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import apsw
import psycopg
import pytest
from tests.contract.conftest import Place
from tests.postgres import fresh_database

from holdfast.errors import HoldfastError, StoreTooNew
from holdfast.store import Store, Tx
from holdfast.store.migrations import Migration, load
from holdfast.store.opening import open_store
from holdfast.store.sqlite import SqliteStore

STEPS = {
    "0001_things.sql": "CREATE TABLE event_head (id INTEGER PRIMARY KEY, seq BIGINT NOT NULL);"
    "INSERT INTO event_head VALUES (1, 0);"
    "CREATE TABLE things (id {autoid}, name TEXT NOT NULL UNIQUE);",
    "0002_colour.sql": "ALTER TABLE things ADD COLUMN colour TEXT;",
    "0002_colour.sqlite.sql": "CREATE INDEX things_by_colour ON things (colour COLLATE NOCASE);",
    "0002_colour.postgres.sql": "CREATE INDEX things_by_colour ON things (lower(colour));",
    "0003_parts.sql": "CREATE TABLE parts (thing BIGINT NOT NULL REFERENCES things (id) ON DELETE CASCADE);"
    "INSERT INTO parts SELECT id FROM things;",
}
BROKEN = "CREATE TABLE half (a TEXT); INSERT INTO nowhere VALUES (1);"
REBUILD = (
    "CREATE TABLE things_new (id {autoid}, name TEXT NOT NULL, colour TEXT);"
    "INSERT INTO things_new SELECT id, name, colour FROM things;"
    "DROP TABLE things; ALTER TABLE things_new RENAME TO things;"
)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where a store is to be, on each engine: nothing is there yet."""
    if request.param == "sqlite":
        return Place("sqlite", tmp_path, "")
    return Place("postgres", tmp_path, fresh_database(request.getfixturevalue("postgres"), migrated=False))


def _known(folder: Path, upto: int, **more: str) -> list[Migration]:
    folder = folder / f"migrations-{upto}-{len(more)}"
    folder.mkdir(exist_ok=True)
    for name, text in {**STEPS, **{f"{name[1:]}.sql": text for name, text in more.items()}}.items():
        if int(name[:4]) <= upto or name[:4] in {key[1:5] for key in more}:
            (folder / name).write_text(text)
    return load(folder)


async def _open(place: Place, known: list[Migration]) -> Store:
    store, _ = await open_store(place.home, place.url or None, known=known)
    return store


def _names(tx: Tx) -> list[str]:
    return [row["name"] for row in tx.all("SELECT name FROM things ORDER BY name")]


@pytest.mark.parametrize("start", [1, 2, 3])
def test_a_store_of_every_earlier_version_is_brought_up_to_date_after_a_backup(place: Place, start: int) -> None:
    async def scenario() -> None:
        store = await _open(place, _known(place.home, start))
        await store.write(lambda tx: tx.run("INSERT INTO things (name) VALUES ('kept')"))
        await store.close()
        assert not (place.home / "backups").exists()

        store = await _open(place, _known(place.home, 3))
        assert await store.read(_names) == ["kept"]
        ledger = await store.read(lambda tx: tx.all("SELECT number, name FROM schema_migrations ORDER BY number"))
        assert [(row["number"], row["name"]) for row in ledger] == [(1, "things"), (2, "colour"), (3, "parts")]
        await store.close()

        backups = list((place.home / "backups").glob("*.db")) if start < 3 else []
        assert len(backups) == (1 if start < 3 else 0)
        for path in backups:
            assert path.name.startswith(f"before-{start + 1:04}-")
            assert path.stat().st_mode & 0o777 == 0o600
            copy = apsw.Connection(str(path))
            assert copy.execute("SELECT name FROM things").fetchall() == [("kept",)]
            assert copy.execute("SELECT max(number) FROM schema_migrations").fetchall() == [(start,)]
            copy.close()

    asyncio.run(scenario())


def test_a_failing_migration_leaves_the_store_as_it_was(place: Place) -> None:
    async def scenario() -> None:
        store = await _open(place, _known(place.home, 2))
        await store.write(lambda tx: tx.run("INSERT INTO things (name) VALUES ('kept')"))
        await store.close()
        with pytest.raises(HoldfastError):
            await _open(place, _known(place.home, 2, _0004_broken=BROKEN))
        store = await _open(place, _known(place.home, 2))
        assert await store.read(_names) == ["kept"]
        with pytest.raises(HoldfastError):
            await store.read(lambda tx: tx.all("SELECT * FROM half"))
        await store.close()

    asyncio.run(scenario())


def test_a_newer_store_is_refused_by_the_name_of_the_program_that_wrote_it(place: Place) -> None:
    async def scenario() -> None:
        store = await _open(place, _known(place.home, 3))
        await store.write(lambda tx: tx.run("UPDATE schema_migrations SET program = '9.8.7' WHERE number = 3"))
        await store.close()
        with pytest.raises(StoreTooNew, match=r"holdfast 9\.8\.7 \(schema 0003 parts\).*Install holdfast 9\.8\.7"):
            await _open(place, _known(place.home, 2))

    asyncio.run(scenario())


def test_a_migration_may_rebuild_a_table_that_others_refer_to(sqlite_place: Place) -> None:
    async def scenario() -> None:
        store = await _open(sqlite_place, _known(sqlite_place.home, 1))
        await store.write(lambda tx: tx.run("INSERT INTO things (name) VALUES ('kept')"))
        await store.close()
        store = await _open(sqlite_place, _known(sqlite_place.home, 3, _0004_rebuild=REBUILD))
        assert await store.read(lambda tx: tx.all("SELECT thing FROM parts")) == [{"thing": 1}]
        await store.close()

    asyncio.run(scenario())


def test_a_migration_that_would_leave_orphans_is_refused(sqlite_place: Place) -> None:
    async def scenario() -> None:
        store = await _open(sqlite_place, _known(sqlite_place.home, 1))
        await store.write(lambda tx: tx.run("INSERT INTO things (name) VALUES ('kept')"))
        await store.close()
        with pytest.raises(HoldfastError, match="rows in parts that refer to missing rows"):
            await _open(sqlite_place, _known(sqlite_place.home, 3, _0004_orphans="DELETE FROM things;"))
        store = await _open(sqlite_place, _known(sqlite_place.home, 3))
        assert await store.read(_names) == ["kept"]
        await store.close()

    asyncio.run(scenario())


def test_the_newest_five_backups_before_migrations_are_kept(sqlite_place: Place) -> None:
    folder = sqlite_place.home / "backups"
    folder.mkdir()
    for number in range(7):
        old = folder / f"before-0001-2020010{number}T000000000Z.db"
        old.touch()
        os.utime(old, (number, number))

    async def scenario() -> None:
        await (await _open(sqlite_place, _known(sqlite_place.home, 1))).close()
        await (await _open(sqlite_place, _known(sqlite_place.home, 2))).close()

    asyncio.run(scenario())
    kept = sorted(path.name[:20] for path in folder.iterdir())
    assert kept[:4] == [f"before-0001-2020010{number}" for number in range(3, 7)]
    assert len(kept) == 5
    assert kept[4].startswith("before-0002-")


def test_the_shipped_migrations_give_both_engines_the_same_tables(sqlite_place: Place, postgres_place: Place) -> None:
    async def scenario() -> None:
        for place in (sqlite_place, postgres_place):
            await place.open().close()

    asyncio.run(scenario())
    from holdfast.store.copying import SEARCH_INDEXES, postgres_tables, sqlite_tables

    file = apsw.Connection(str(sqlite_place.path))
    with psycopg.connect(postgres_place.url) as server:
        from psycopg.rows import dict_row

        server.row_factory = dict_row  # type: ignore[assignment]
        schema = server.execute("SELECT current_schema() AS name").fetchone()
        theirs = postgres_tables(server, schema["name"])  # type: ignore[arg-type, index, call-overload]
    ours = {table.name: table for table in sqlite_tables(file)}
    file.close()
    assert all(theirs.pop(name) for name in SEARCH_INDEXES), "virtual tables on SQLite"
    assert theirs.pop("signing_keys"), "kept in a file beside SQLite, so that no backup carries it"
    assert {name: set(table.columns) for name, table in ours.items()} == {
        name: set(table.columns) for name, table in theirs.items()
    }


def test_opening_an_up_to_date_store_takes_no_backup(sqlite_place: Place) -> None:
    async def scenario() -> None:
        for _ in range(2):
            store, notices = await open_store(sqlite_place.home)
            assert isinstance(store, SqliteStore)
            assert notices == []
            await store.close()

    asyncio.run(scenario())
    assert not (sqlite_place.home / "backups").exists()
