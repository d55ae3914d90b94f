"""What only the PostgreSQL engine has to survive: deadlocks, lost connections, a commit in doubt."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import psycopg
import pytest
from tests.contract.conftest import Place

from holdfast.errors import BadInput, Busy, StoreError
from holdfast.store import Tx, events
from holdfast.store.backlog import Backlog
from holdfast.store.postgres import PostgresStore

WAIT = 60.0


def _project(tx: Tx, root: str) -> None:
    tx.run("INSERT INTO projects (root_uri) VALUES (:root)", root=root)


def _hang_up(tx: Tx) -> None:
    tx.run("SELECT pg_terminate_backend(pg_backend_pid())")


def test_a_closure_is_run_again_after_a_deadlock(postgres_place: Place) -> None:
    async def scenario() -> None:
        store = PostgresStore.open(postgres_place.url)
        await store.write(lambda tx: _project(tx, "a"))
        await store.write(lambda tx: _project(tx, "b"))
        both = threading.Barrier(2)
        runs: list[str] = []

        def change(tx: Tx, first: str, second: str) -> None:
            update = "UPDATE projects SET project_key = coalesce(project_key, '') || :mark WHERE root_uri = :root"
            runs.append(first)
            tx.run(update, mark=first, root=first)
            if len(runs) <= 2:
                both.wait(WAIT)
            tx.run(update, mark=first, root=second)
            tx.emit("changed", first)

        await asyncio.gather(store.write(lambda tx: change(tx, "a", "b")), store.write(lambda tx: change(tx, "b", "a")))
        # The one that is run again may be faster than the one that waited, and then they meet once more.
        assert len(runs) >= 3
        rows = await store.read(lambda tx: tx.all("SELECT project_key FROM projects"))
        assert [sorted(row["project_key"]) for row in rows] == [["a", "b"], ["a", "b"]]
        assert await store.read(events.head) == 2
        await store.close()

    asyncio.run(scenario())


def test_a_connection_lost_before_the_commit_is_replaced_and_the_closure_run_again(postgres_place: Place) -> None:
    async def scenario() -> None:
        store = PostgresStore.open(postgres_place.url)
        runs: list[int] = []

        def change(tx: Tx) -> None:
            runs.append(1)
            _project(tx, "a")
            if len(runs) == 1:
                _hang_up(tx)

        await store.write(change)
        assert len(runs) == 2
        rows = await store.read(lambda tx: tx.all("SELECT root_uri FROM projects"))
        assert rows == [{"root_uri": "a"}]
        await store.close()

    asyncio.run(scenario())


def test_a_closure_that_always_loses_its_connection_ends_in_an_error(postgres_place: Place) -> None:
    async def scenario() -> None:
        store = PostgresStore.open(postgres_place.url)
        with pytest.raises(StoreError, match="refused"):
            await store.write(_hang_up)
        await store.write(lambda tx: _project(tx, "goes on"))
        await store.close()

    asyncio.run(scenario())


def test_idle_connections_that_the_server_dropped_are_not_noticed_by_callers(postgres_place: Place) -> None:
    async def scenario() -> None:
        store = PostgresStore.open(postgres_place.url)
        await asyncio.gather(*(store.write(partial(_project, root=str(n))) for n in range(20)))
        with psycopg.connect(postgres_place.url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                " AND backend_type = 'client backend'"
            )
        await asyncio.gather(*(store.write(partial(_project, root=str(n))) for n in range(20, 40)))
        rows = await store.read(lambda tx: tx.all("SELECT root_uri FROM projects"))
        assert len(rows) == 40
        await store.close()

    asyncio.run(scenario())


def test_a_follower_outlives_its_listening_connection(postgres_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "POLL_SECONDS", 10 * WAIT)

    async def scenario() -> None:
        store = PostgresStore.open(postgres_place.url)
        following = events.follow(store, 0)
        waiting = asyncio.ensure_future(anext(following))
        await store.write(lambda tx: tx.emit("before", "x"))
        assert [event.seq for event in await asyncio.wait_for(waiting, WAIT)] == [1]
        waiting = asyncio.ensure_future(anext(following))
        with psycopg.connect(postgres_place.url, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
        await store.write(lambda tx: tx.emit("after", "x"))
        assert [event.seq for event in await asyncio.wait_for(waiting, WAIT)] == [2]
        await following.aclose()  # type: ignore[attr-defined]
        await store.close()

    asyncio.run(scenario())


def test_a_commit_that_the_server_always_hangs_up_on_ends_in_an_error_and_without_effect(postgres_place: Place) -> None:
    async def scenario() -> None:
        store = PostgresStore.open(postgres_place.url)
        with psycopg.connect(postgres_place.url, autocommit=True) as connection:
            # The server hangs up in the middle of COMMIT, when deferred triggers run.
            connection.execute(
                "CREATE FUNCTION hang_up() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$"
            )
            connection.execute(
                "CREATE CONSTRAINT TRIGGER hang_up AFTER INSERT ON projects DEFERRABLE INITIALLY DEFERRED"
                " FOR EACH ROW EXECUTE FUNCTION hang_up()"
            )
        with pytest.raises(StoreError, match="refused"):
            await store.write(lambda tx: _project(tx, "a"))
        assert await store.read(lambda tx: tx.all("SELECT root_uri FROM projects")) == []
        await store.close()

    asyncio.run(scenario())


def test_a_closure_that_hides_an_error_is_not_acknowledged(postgres_place: Place) -> None:
    async def scenario() -> None:
        store = PostgresStore.open(postgres_place.url)

        def hides(tx: Tx) -> None:
            _project(tx, "a")
            with pytest.raises(psycopg.Error):
                _project(tx, "a")

        with pytest.raises(StoreError, match="undid the change"):
            await store.write(hides)
        await store.close()

    asyncio.run(scenario())


def test_a_full_queue_of_postgres_says_busy(postgres_place: Place) -> None:
    async def scenario() -> None:
        store = PostgresStore.open(postgres_place.url)
        store._backlog = Backlog(limit=2)
        end = threading.Event()
        waiting = [asyncio.create_task(store.write(lambda tx: end.wait(WAIT))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Busy, match="2 calls are already waiting"):
            await store.write(lambda tx: None)
        end.set()
        assert await asyncio.gather(*waiting) == [True, True]
        await store.write(lambda tx: None)
        await store.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("postgresql://user:sekret@127.0.0.1:1/holdfast", StoreError),
        ("postgresql://user:sekret@127.0.0.1:port/holdfast", StoreError),
        ("postgresql://user:sekret@[::1/holdfast", BadInput),
        ("postgresql:/user=x password=sekret", BadInput),
    ],
)
def test_a_server_that_cannot_be_reached_is_named_without_its_password(url: str, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        PostgresStore.open(url)
    said: BaseException | None = raised.value
    while said is not None:
        assert "sekret" not in str(said)
        said = said.__cause__ or (None if said.__suppress_context__ else said.__context__)


def test_a_schema_that_does_not_exist_is_named(postgres_place: Place) -> None:
    with pytest.raises(StoreError, match=r"nowhere.*CREATE SCHEMA"):
        PostgresStore.open(postgres_place.url + "&options=-csearch_path%3Dnowhere")


def test_two_daemons_that_start_at_once_migrate_once(postgres_place: Place) -> None:
    async def scenario() -> None:
        stores = await asyncio.gather(*(asyncio.to_thread(PostgresStore.open, postgres_place.url) for _ in range(4)))
        ledger = await stores[0].read(lambda tx: tx.all("SELECT number FROM schema_migrations ORDER BY number"))
        assert len(ledger) == len({row["number"] for row in ledger})
        for store in stores:
            await store.close()

    asyncio.run(scenario())
