"""What only the SQLite engine has to survive: kill -9, a full disk, damage met at run time."""

from __future__ import annotations

import asyncio
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.contract.conftest import Place, root_page, spoil

from holdfast.errors import StoreCorrupt, StoreError
from holdfast.store import Tx, sqlite_readers
from holdfast.store.copying import sqlite_tables
from holdfast.store.sqlite import SqliteStore

WAIT = 60.0

WRITER = """
import asyncio, sys
from pathlib import Path
from holdfast.store.sqlite import SqliteStore

async def write(store, writer):
    number = 0
    while True:
        root = f"{writer}-{number}"
        await store.write(lambda tx: (tx.run("INSERT INTO projects (root_uri) VALUES (:root)", root=root),
                                      tx.emit("made", root)))
        print(root, flush=True)
        number += 1

async def main():
    store = SqliteStore.open(Path(sys.argv[1]))
    await asyncio.gather(*(write(store, writer) for writer in range(4)))

asyncio.run(main())
"""


def _project(root: str, size: int = 0) -> Callable[[Tx], int]:
    def write(tx: Tx) -> int:
        tx.emit("made", root)
        insert = "INSERT INTO projects (root_uri, project_key) VALUES (:root, :key)"
        return tx.run(insert, root=root, key="x" * size)

    return write


def _roots(tx: Tx) -> list[str]:
    return [row["root_uri"] for row in tx.all("SELECT root_uri FROM projects ORDER BY root_uri")]


def test_an_acknowledged_write_survives_kill_nine(sqlite_place: Place) -> None:
    command = [sys.executable, "-c", WRITER, str(sqlite_place.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        acknowledged = [process.stdout.readline().strip() for _ in range(200)]
        process.send_signal(signal.SIGKILL)
        acknowledged += [line.strip() for line in process.stdout if line.endswith("\n")]

    async def scenario() -> None:
        store = SqliteStore.open(sqlite_place.path)
        found = set(await store.read(_roots))
        assert set(acknowledged) <= found
        told = await store.read(lambda tx: {row["subject"] for row in tx.all("SELECT subject FROM events")})
        assert told == found
        await store.close()

    asyncio.run(scenario())


def test_who_waits_is_told_before_somebody_elses_long_work_ends(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.store.sqlite.GROUP_LIMIT", 1)
    told = threading.Event()

    def long(tx: Tx) -> bool:
        for _ in range(200):
            tx.one("SELECT 1 AS one")
        return told.wait(WAIT)

    async def scenario() -> None:
        store = SqliteStore.open(sqlite_place.path)
        short = [asyncio.create_task(store.write(_project(root))) for root in ("first", "second")]
        after = asyncio.create_task(store.write(long))
        assert await asyncio.gather(*short) == [1, 1]
        told.set()
        assert await after
        await store.close()

    asyncio.run(scenario())


def test_who_waits_is_told_when_the_store_is_closed_at_that_moment(sqlite_place: Place) -> None:
    class Late(queue.SimpleQueue[Any]):
        """What comes next is the end, and it comes between the last commit and the look for more."""

        def empty(self) -> bool:
            while super().empty():
                closing.set()
            return False

    closing = threading.Event()

    async def scenario() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("holdfast.store.sqlite.queue.SimpleQueue", Late)
            store = SqliteStore.open(sqlite_place.path)
        writing = asyncio.create_task(store.write(_project("last")))
        assert await asyncio.to_thread(closing.wait, WAIT)
        await store.close()
        assert await asyncio.wait_for(writing, WAIT) == 1

    asyncio.run(scenario())


def test_a_full_disk_fails_the_whole_group_and_the_store_goes_on_when_there_is_room(sqlite_place: Place) -> None:
    async def scenario() -> None:
        store = SqliteStore.open(sqlite_place.path)
        await store.write(_project("before"))
        pages = await store.write(lambda tx: tx.all("PRAGMA page_count")[0]["page_count"])
        await store.write(lambda tx: tx.all(f"PRAGMA max_page_count = {pages + 2}"))
        started, end = threading.Event(), threading.Event()

        def occupy(tx: Tx) -> None:
            started.set()
            assert end.wait(WAIT)

        occupying = asyncio.create_task(store.write(occupy))
        assert await asyncio.to_thread(started.wait, WAIT)
        group = [asyncio.create_task(store.write(_project(f"{n}", size))) for n, size in enumerate((1, 99_999, 1))]
        await asyncio.sleep(0)
        end.set()
        await occupying
        outcomes = await asyncio.gather(*group, return_exceptions=True)
        assert [str(outcome) for outcome in outcomes] == [
            "The disk is full; nothing was written. Free disk space and repeat the call."
        ] * 3
        assert await store.read(_roots) == ["before"]
        await store.write(lambda tx: tx.all("PRAGMA max_page_count = 1000000"))
        assert await asyncio.gather(*(store.write(_project(f"{n}", 99_999)) for n in range(3))) == [1, 1, 1]
        assert await store.read(_roots) == ["0", "1", "2", "before"]
        await store.close()

    asyncio.run(scenario())


def test_damage_met_at_run_time_is_typed_and_reported_once(sqlite_place: Place) -> None:
    async def scenario() -> None:
        store = SqliteStore.open(sqlite_place.path)
        for number in range(50):
            await store.write(_project(f"{number:02}", 2000))
        await store.close()
        spoil(sqlite_place.path, root_page(sqlite_place.path, "projects"))
        store = SqliteStore.open(sqlite_place.path)
        reported: list[StoreCorrupt] = []
        store.corrupt = reported.append
        for _ in range(2):
            with pytest.raises(StoreCorrupt, match="damaged"):
                await store.read(lambda tx: tx.all("SELECT * FROM projects"))
        assert len(reported) == 1
        await store.close()

    asyncio.run(scenario())


def test_a_file_that_is_no_database_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    path.write_bytes(b"not a database at all" * 500)
    with pytest.raises(StoreCorrupt, match=r"holdfast\.db"):
        SqliteStore.open(path)


def test_every_table_has_row_numbers_because_salvage_reads_by_them(sqlite_place: Place) -> None:
    async def scenario() -> None:
        await SqliteStore.open(sqlite_place.path).close()

    asyncio.run(scenario())
    connection = apsw.Connection(str(sqlite_place.path))
    assert sqlite_tables(connection)
    without = connection.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND wr = 1"
    )
    assert without.fetchall() == []
    connection.close()


def test_a_closure_that_ends_the_transaction_itself_does_not_stop_the_writer(sqlite_place: Place) -> None:
    async def scenario() -> None:
        store = SqliteStore.open(sqlite_place.path)

        def breaks_in(tx: Tx) -> None:
            _project("lost")(tx)
            tx.run("COMMIT")  # what no closure may do

        with pytest.raises(StoreError):
            await store.write(breaks_in)
        assert await store.write(_project("goes on")) == 1
        await store.close()

    asyncio.run(scenario())


@pytest.mark.anyio
async def test_work_alone_stands_between_two_transactions_and_its_error_is_its_callers(sqlite_place: Place) -> None:
    store = sqlite_place.open()
    assert isinstance(store, SqliteStore)

    def write(tx: Tx, number: int) -> int:
        return tx.run("INSERT INTO leases (name, holder, until) VALUES (:name, 'x', 1)", name=str(number))

    def count(connection: apsw.Connection) -> int:
        connection.execute("VACUUM")  # which no transaction may be open for
        return int(str(connection.execute("SELECT count(*) FROM leases").fetchall()[0][0]))

    try:
        before = [asyncio.create_task(store.write(partial(write, number=number))) for number in range(20)]
        alone = asyncio.create_task(store.alone(count))
        failing = asyncio.create_task(store.alone(lambda connection: connection.execute("no such thing").fetchall()))
        after = [asyncio.create_task(store.write(partial(write, number=number))) for number in range(20, 40)]
        assert await asyncio.gather(*before, *after) == [1] * 40
        assert await alone == 20
        with pytest.raises(StoreError, match="syntax error"):
            await failing
    finally:
        await store.close()


@pytest.mark.anyio
async def test_reads_of_one_turn_share_a_thread_and_not_their_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_readers, "LONG_SECONDS", WAIT)
    store = SqliteStore.open(tmp_path / "one.db")
    try:
        await store.write(_project("a"))

        def fails(tx: Tx) -> str:
            raise KeyError("this one")

        def where(tx: Tx) -> tuple[str, list[str]]:
            return threading.current_thread().name, _roots(tx)

        first, wrong, last = await asyncio.gather(
            store.read(where), store.read(fails), store.read(where), return_exceptions=True
        )
        assert first == last and isinstance(first, tuple) and first[1] == ["a"]
        assert isinstance(wrong, KeyError)
    finally:
        await store.close()


@pytest.mark.anyio
async def test_a_read_that_took_long_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_readers, "LONG_SECONDS", 0.0)
    store = SqliteStore.open(tmp_path / "one.db")
    goes_on = threading.Event()

    def long(tx: Tx) -> str:
        assert goes_on.wait(WAIT)
        return threading.current_thread().name

    try:
        goes_on.set()
        behind_it = await asyncio.gather(store.read(long), *(store.read(_roots) for _ in range(3)))
        assert behind_it[1:] == [[], [], []]
        goes_on.clear()
        waiting = asyncio.ensure_future(store.read(long))
        async with asyncio.timeout(WAIT):
            assert await asyncio.gather(*(store.read(_roots) for _ in range(3))) == [[], [], []]
        assert not waiting.done()
        goes_on.set()
        assert await waiting
    finally:
        await store.close()


@pytest.mark.anyio
async def test_a_caller_that_stops_waiting_takes_nothing_from_those_beside_it(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "one.db")
    try:
        gone = asyncio.ensure_future(store.read(_roots))
        stays = asyncio.ensure_future(store.read(_roots))
        await asyncio.sleep(0)
        gone.cancel()
        assert await stays == []
        assert gone.cancelled() and await store.read(_roots) == []
    finally:
        await store.close()
