"""A backup is one file, taken under load, and goes back into either engine."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import apsw
import pytest
from tests.contract.conftest import Place, leaf_pages, spoil

from holdfast.errors import BadInput, Conflict, NotFound, StoreCorrupt, StoreError, StoreTooNew
from holdfast.reasoning.search import index_some
from holdfast.store import Row, Store, Tx, events
from holdfast.store.backup.backup import backup
from holdfast.store.backup.restore import RestoreReport, check_backup, restore_postgres, restore_sqlite
from holdfast.store.migrations import load
from holdfast.store.opening import open_store
from holdfast.store.verify import verify

TABLES = ("sessions", "thoughts", "branches", "session_links", "projects", "events", "event_head", "calls")


def add_thought(tx: Tx, session: str, number: int, content: str = "thinking") -> None:
    tx.run(
        "INSERT INTO thoughts (session_id, number, content, next_needed, is_revision, needs_more, created_at,"
        " prev_hash, hash) VALUES (:session, :number, :content, 1, 0, 0, :now, '', :hash)",
        session=session,
        number=number,
        content=content,
        now=tx.now(),
        hash=f"{session}/{number}",
    )
    tx.run("UPDATE sessions SET thought_count = :number WHERE id = :session", number=number, session=session)
    tx.emit("thought", session, {"number": number})


def add_session(tx: Tx, session: str, title: str = "Ein Titel – 100 %") -> None:
    tx.run(
        "INSERT INTO sessions (id, title, tags, status, pinned, thought_count, branch_count, head_hash, created_at,"
        " updated_at) VALUES (:id, :title, '[]', 'active', 0, 0, 0, '', :now, :now)",
        id=session,
        title=title,
        now=tx.now(),
    )
    tx.emit("session", session)


async def fill(store: Store, sessions: int = 3, thoughts: int = 30) -> None:
    def write(tx: Tx) -> None:
        for number in range(sessions):
            add_session(tx, f"s{number}")
        tx.run("INSERT INTO session_links (session_id, linked_id, at) VALUES ('s2', 's0', 1)")
        tx.run("INSERT INTO branches VALUES ('s1', 'b', 3, 1, 1)")
        tx.run("INSERT INTO projects (root_uri, project_key) VALUES (:root, :key)", root="file:///ü\t\\N\n", key=None)
        for session in range(sessions):
            for number in range(1, thoughts + 1):
                add_thought(tx, f"s{session}", number, f"needle{number} " + "wörd\n" * 300)

    await store.write(write)


async def contents(store: Store) -> dict[str, list[Row]]:
    def read(tx: Tx) -> dict[str, list[Row]]:
        found = {}
        for table in TABLES:
            # A restored store has another epoch, and only PostgreSQL keeps the search in a column.
            rows = [
                {k: v for k, v in row.items() if k not in ("search", "epoch")}
                for row in tx.all(f"SELECT * FROM {table}")
            ]
            found[table] = sorted(rows, key=repr)
        return found

    return await store.read(read)


def restore(source: Path, place: Place, *, replace: bool = False) -> RestoreReport:
    if place.engine == "sqlite":
        return restore_sqlite(source, place.path)
    return restore_postgres(source, place.url, replace=replace)


@pytest.fixture(params=["sqlite", "postgres"])
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A second store, on either engine."""
    (tmp_path / "other").mkdir()
    if request.param == "sqlite":
        return Place("sqlite", tmp_path / "other", "")
    return Place("postgres", tmp_path / "other", request.getfixturevalue("new_database")())


def test_a_backup_goes_from_either_engine_into_either_engine(place: Place, other: Place) -> None:
    target = place.home / "backup.db"

    async def scenario() -> None:
        store = place.open()
        await fill(store)
        told: list[float] = []
        report = await backup(store, target, lambda done, doing: told.append(done))
        assert report.rows["thoughts"] == 90
        assert report.schema == load()[-1].number
        assert target.stat().st_mode & 0o777 == 0o600
        assert told
        assert all(0 <= done <= 1 for done in told)
        expected = await contents(store)
        await store.close()

        restored = await asyncio.to_thread(restore, target, other)
        assert restored.rows == report.rows
        store = other.open()
        assert await contents(store) == expected
        assert (await verify(store)).ok
        # What is written next continues the numbers, and the search index is there.
        await store.write(lambda tx: add_thought(tx, "s0", 31, "later"))
        while await store.write(index_some):
            continue
        found = "SELECT count(*) AS n FROM thoughts_fts WHERE thoughts_fts MATCH 'needle7'"
        if other.engine == "postgres":
            found = "SELECT count(*) AS n FROM thoughts_fts WHERE words @@ to_tsquery('simple', 'needle7')"
        assert await store.read(lambda tx: tx.one(found)) == {"n": 3}
        assert await store.read(events.head) == len(expected["events"]) + 1
        await store.close()

    asyncio.run(scenario())
    assert sorted(path.name for path in place.home.glob("backup.db*")) == ["backup.db"]


def test_a_backup_taken_while_others_write_is_one_consistent_moment(place: Place) -> None:
    async def scenario() -> None:
        store = place.open()
        await fill(store, thoughts=200)
        stop = asyncio.Event()

        async def keep_writing() -> int:
            number = 200
            while not stop.is_set():
                number += 1
                await store.write(lambda tx, number=number: add_thought(tx, "s0", number))  # type: ignore[misc]
            return number

        writing = asyncio.create_task(keep_writing())
        for turn in range(3):
            target = place.home / f"backup-{turn}.db"
            await backup(store, target)
            file = apsw.Connection(str(target))
            counts = file.execute(
                "SELECT thought_count, (SELECT count(*) FROM thoughts WHERE session_id = 's0'),"
                " (SELECT max(number) FROM thoughts WHERE session_id = 's0') FROM sessions WHERE id = 's0'"
            ).fetchall()[0]
            assert len(set(counts)) == 1
            heads = file.execute(
                "SELECT seq, (SELECT max(seq) FROM events), (SELECT count(*) FROM events) FROM event_head"
            )
            assert len(set(heads.fetchall()[0])) == 1
            file.close()
        stop.set()
        assert await writing > 200
        await store.close()

    asyncio.run(scenario())


def test_an_existing_file_is_not_overwritten_unless_told(place: Place) -> None:
    target = place.home / "backup.db"

    async def scenario() -> None:
        store = place.open()
        target.write_text("precious")
        with pytest.raises(Conflict, match="already exists"):
            await backup(store, target)
        assert target.read_text() == "precious"
        await backup(store, target, replace=True)
        assert check_backup(target) == []
        with pytest.raises(StoreError, match="does not exist"):
            await backup(store, place.home / "nowhere" / "backup.db")
        await store.close()

    asyncio.run(scenario())


async def _backup_of_some(place: Place, target: Path) -> None:
    store = place.open()
    await fill(store)
    await backup(store, target)
    await store.close()


def test_what_is_no_whole_backup_of_ours_is_refused_and_nothing_changes(place: Place) -> None:
    async def scenario() -> None:
        good = place.home / "good.db"
        await _backup_of_some(place, good)
        text = place.home / "text.db"
        text.write_text("no database" * 1000)
        foreign = place.home / "foreign.db"
        connection = apsw.Connection(str(foreign))
        connection.execute("CREATE TABLE theirs (a)")
        connection.close()
        damaged = place.home / "damaged.db"
        damaged.write_bytes(good.read_bytes())
        spoil(damaged, leaf_pages(good, "thoughts")[3])
        newer = place.home / "newer.db"
        newer.write_bytes(good.read_bytes())
        connection = apsw.Connection(str(newer))
        connection.execute("INSERT INTO schema_migrations VALUES (9999, 'future', '99.0', 0)")
        connection.close()
        for source, error, said in (
            (place.home / "none.db", NotFound, "no file"),
            (text, BadInput, "not a SQLite file"),
            (foreign, BadInput, "not a Holdfast backup"),
            (damaged, StoreCorrupt, "damaged"),
            (newer, StoreTooNew, r"holdfast 99\.0 \(schema 9999 future\)"),
        ):
            with pytest.raises(error, match=said):
                restore(source, place, replace=True)
        store = place.open()
        assert len((await contents(store))["thoughts"]) == 90
        await store.close()

    asyncio.run(scenario())


def test_the_replaced_sqlite_database_is_kept(sqlite_place: Place) -> None:
    async def scenario() -> None:
        target = sqlite_place.home / "backup.db"
        await _backup_of_some(sqlite_place, target)
        store = sqlite_place.open()
        await store.write(lambda tx: add_session(tx, "newer than the backup"))
        with pytest.raises(Conflict, match="in use"):
            restore(target, sqlite_place)
        await store.close()
        report = restore(target, sqlite_place)
        assert report.previous is not None
        assert report.previous.name.startswith("holdfast.db.before-restore-2")
        store = sqlite_place.open()
        assert len((await contents(store))["sessions"]) == 3
        await store.close()
        previous = apsw.Connection(str(report.previous))
        assert previous.execute("SELECT count(*) FROM sessions").fetchall() == [(4,)]
        previous.close()

    asyncio.run(scenario())


def test_a_postgres_schema_with_data_is_only_replaced_when_told(postgres_place: Place) -> None:
    async def scenario() -> None:
        target = postgres_place.home / "backup.db"
        await _backup_of_some(postgres_place, target)
        store = postgres_place.open()
        await store.write(lambda tx: add_session(tx, "newer than the backup"))
        with pytest.raises(Conflict, match="already holds data"):
            await asyncio.to_thread(restore, target, postgres_place)
        assert len((await contents(store))["sessions"]) == 4
        await asyncio.to_thread(restore, target, postgres_place, replace=True)
        assert len((await contents(store))["sessions"]) == 3
        await store.write(lambda tx: add_thought(tx, "s0", 31))
        with pytest.raises(StoreError, match="refused"):  # the foreign keys are back
            await store.write(lambda tx: add_thought(tx, "nobody", 1))
        await store.close()

    asyncio.run(scenario())


def test_an_older_backup_is_migrated_on_the_way(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "newer-migrations"
    folder.mkdir()
    last = load()[-1].number
    for step in load():
        for engine, script in step.scripts.items():
            (folder / f"{step.number:04}_{step.name}.{engine}.sql").write_text(script)
    (folder / f"{last + 1:04}_mood.sql").write_text("ALTER TABLE sessions ADD COLUMN mood TEXT DEFAULT 'calm';")
    newer = load(folder)

    async def scenario() -> None:
        target = place.home / "backup.db"
        await _backup_of_some(place, target)
        before = target.read_bytes()
        if place.engine == "sqlite":
            report = restore_sqlite(target, place.path, known=newer)
        else:
            report = restore_postgres(target, place.url, known=newer, replace=True)
        assert report.migrated == [last + 1]
        assert target.read_bytes() == before
        store, _ = await open_store(place.home, place.url or None, known=newer)
        moods = await store.read(lambda tx: tx.all("SELECT DISTINCT mood FROM sessions"))
        assert moods == [{"mood": "calm"}]
        await store.close()

    asyncio.run(scenario())


def test_a_backup_that_fails_leaves_nothing_behind(sqlite_place: Place) -> None:
    async def scenario() -> None:
        store = sqlite_place.open()
        await fill(store)

        def stop(done: float, doing: str) -> None:
            raise RuntimeError("stopped by the user")

        with pytest.raises(RuntimeError, match="stopped"):
            await backup(store, sqlite_place.home / "backup.db", stop)
        assert list(sqlite_place.home.glob("backup.db*")) == []
        await store.close()

    asyncio.run(scenario())


def test_the_event_loop_goes_on_while_a_backup_is_taken(sqlite_place: Place) -> None:
    async def scenario() -> None:
        store = sqlite_place.open()
        await fill(store)
        reached, go_on = threading.Event(), threading.Event()

        def hold(done: float, doing: str) -> None:
            reached.set()
            assert go_on.wait(60)

        taking = asyncio.create_task(backup(store, sqlite_place.home / "backup.db", hold))
        assert await asyncio.to_thread(reached.wait, 60)
        await store.write(lambda tx: add_session(tx, "meanwhile"))
        go_on.set()
        assert (await taking).rows["sessions"] == 3
        await store.close()

    asyncio.run(scenario())


def test_text_that_is_not_utf8_is_named_and_stops_neither_backup_nor_restore(sqlite_place: Place, other: Place) -> None:
    """The file keeps the bytes; PostgreSQL takes neither them nor a NUL and has U+FFFD in their place."""

    async def scenario() -> None:
        store = sqlite_place.open()
        await fill(store)
        await store.write(lambda tx: tx.run("UPDATE thoughts SET content = CAST(X'6261ff64' AS TEXT) WHERE row_id = 2"))
        await store.write(lambda tx: tx.run("UPDATE thoughts SET content = 'nul' || char(0) || 'nul' WHERE row_id = 3"))
        taken = await backup(store, sqlite_place.home / "backup.db")
        assert taken.damaged_texts == ["thoughts, row_id 2: content"]
        await store.close()

        restored = await asyncio.to_thread(restore, taken.path, other)
        assert restored.rows == taken.rows
        in_postgres = other.engine == "postgres"
        also = ["thoughts, row_id 3: content"] if in_postgres else []
        assert restored.damaged_texts == ["thoughts, row_id 2: content", *also]
        store = other.open()
        kept = await store.read(
            lambda tx: tx.all("SELECT content FROM thoughts WHERE row_id IN (2, 3) ORDER BY row_id")
        )
        nul = "\ufffd" if in_postgres else "\0"
        assert [row["content"] for row in kept] == ["ba\ufffdd", f"nul{nul}nul"]
        if not in_postgres:
            raw = await store.read(lambda tx: tx.one("SELECT hex(content) AS h FROM thoughts WHERE row_id = 2"))
            assert raw == {"h": "6261FF64"}
        assert (await verify(store)).ok
        await store.close()

    asyncio.run(scenario())
