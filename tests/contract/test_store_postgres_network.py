"""A network that cuts or swallows what is said to PostgreSQL: a call's answer is true, and its effect there once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator

import psycopg
import pytest
from tests.chaos.server import Postgres
from tests.contract.conftest import Place
from tests.installation import wait_until
from tests.postgres import own_server
from tests.postgres_proxy import Fault, Proxy, proxied

from holdfast.errors import OutcomeUnknown, StoreError, StoreUnreachable
from holdfast.store import Tx, postgres, postgres_pool
from holdfast.store.postgres import PostgresStore
from holdfast.store.postgres_connection import WatchedConnection
from holdfast.store.postgres_server import TCP, Server

pytestmark = pytest.mark.anyio

WAIT = 60.0


@pytest.fixture
def proxy(postgres_place: Place) -> Iterator[Proxy]:
    with proxied(postgres_place.url) as one:
        yield one


@pytest.fixture(scope="module")
def crashing() -> Iterator[Postgres]:
    """A server that may crash, and writes its log so seldom that a crash forgets what was not committed."""
    with own_server() as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
            connection.execute("SELECT pg_reload_conf()")
        yield Postgres(server)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence is noticed soon, so that no test waits for it."""
    monkeypatch.setattr(WatchedConnection, "silence", 0.3)


@pytest.fixture
def short_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call does not wait for a server that is away."""
    monkeypatch.setattr(postgres, "CALL_SECONDS", 0.5)
    monkeypatch.setattr(postgres, "SETTLE_SECONDS", 0.5)
    monkeypatch.setattr(postgres_pool, "CALL_SECONDS", 0.5)


def _add(tx: Tx) -> int:
    """A change that shows how often it was made, under a lock that only one transaction has at a time."""
    tx.run("UPDATE event_head SET seq = seq WHERE id = 1")
    tx.run("INSERT INTO projects (root_uri) VALUES (:root)", root=tx.new_id())
    return _count(tx)


def _add_and_tell(tx: Tx) -> int:
    tx.emit("added", "x")
    return _add(tx)


def _count(tx: Tx) -> int:
    row = tx.one("SELECT count(*) AS n FROM projects")
    assert row is not None
    return int(row["n"])


def _away(store: PostgresStore) -> bool:
    return store.outage is not None


async def _back(store: PostgresStore) -> None:
    await asyncio.to_thread(wait_until, lambda: not _away(store), "the server answers again")


def _stored(place: Place) -> int:
    """How often the change was made, without the proxy."""
    return _rows(place.url)


def _rows(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute("SELECT count(*) FROM projects").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("change", [_add, _add_and_tell])
@pytest.mark.parametrize("before", [0, 9], ids=["text", "prepared"])
@pytest.mark.parametrize("fault", ["cut before", "cut after", "deaf before", "deaf after"])
async def test_a_commit_without_an_answer_is_found_out_and_takes_effect_once(
    postgres_place: Place, proxy: Proxy, impatient: None, fault: Fault, before: int, change: object
) -> None:
    assert callable(change)
    store = PostgresStore.open(proxy.url)
    try:
        for _ in range(before):
            await store.write(change)
        proxy.at_commit = fault
        # On a deaf connection the server holds the lock of the first attempt until it is told that nobody is there.
        assert await asyncio.wait_for(store.write(change), WAIT) == before + 1
        assert proxy.faults == 1
        assert _stored(postgres_place) == before + 1
        assert await store.write(change) == before + 2
    finally:
        await store.close()


@pytest.mark.parametrize("change", [_add, _add_and_tell])
async def test_a_number_that_the_server_gave_away_again_after_a_crash_is_no_proof_of_a_commit(
    crashing: Postgres, change: object
) -> None:
    """The commit never came, the crash forgot its transaction's number, and a stranger's transaction got that one."""
    assert callable(change)
    url = crashing.database()
    with proxied(url) as proxy:
        store = PostgresStore.open(proxy.url)
        try:
            proxy.at_commit, proxy.then_refuse = "deaf before", True
            writing = asyncio.ensure_future(store.write(change))
            await asyncio.to_thread(wait_until, lambda: proxy.faults == 1, "the commit is swallowed")
            crashing.stop()
            crashing.start()
            with psycopg.connect(url, autocommit=True) as stranger:
                for _ in range(50):
                    stranger.execute("CREATE TABLE x (y int)")
                    stranger.execute("DROP TABLE x")
            proxy.join()
            if change is _add_and_tell:
                assert await asyncio.wait_for(writing, WAIT) == 1, "its event is not there, so it was made again"
            else:
                with pytest.raises(OutcomeUnknown, match="the server crashed"):
                    await asyncio.wait_for(writing, WAIT)
            assert _rows(url) == (change is _add_and_tell)
        finally:
            await store.close()


async def test_a_crash_of_one_of_its_processes_is_a_new_life_of_the_server(crashing: Postgres) -> None:
    server = Server(crashing.database())
    with server.connect() as before:
        assert before.backend is not None
        life, pid = before.backend.life, before.backend.pid
        with server.connect() as another:
            assert another.backend is not None and another.backend.life == life
        os.kill(pid, signal.SIGKILL)

    def reborn() -> bool:
        with contextlib.suppress(StoreError), server.connect() as after:
            return after.backend is not None and after.backend.life != life
        return False

    wait_until(reborn, "the server has repaired itself")


@pytest.mark.parametrize(("fault", "made"), [("cut before", 0), ("cut after", 1)])
async def test_where_nobody_can_find_out_the_answer_says_so_and_calls_no_repetition_safe(
    postgres_place: Place, proxy: Proxy, impatient: None, short_calls: None, fault: Fault, made: int
) -> None:
    store = PostgresStore.open(proxy.url)
    try:
        proxy.at_commit, proxy.then_refuse = fault, True
        with pytest.raises(OutcomeUnknown, match="not known whether it took effect") as raised:
            await asyncio.wait_for(store.write(_add), WAIT)
        assert "Check whether it did before you repeat it" in str(raised.value)
        assert "safe" not in str(raised.value)
        assert "sekret" not in str(raised.value)
        assert _stored(postgres_place) == made
        proxy.join()
        await _back(store)
        assert await store.write(_add) == made + 1
    finally:
        await store.close()


@pytest.mark.parametrize("write", [True, False], ids=["write", "read"])
async def test_a_call_into_a_black_hole_is_answered_and_nothing_is_done_twice(
    postgres_place: Place, proxy: Proxy, impatient: None, short_calls: None, *, write: bool
) -> None:
    store = PostgresStore.open(proxy.url)
    try:
        await store.write(_add)

        def half(tx: Tx) -> int:
            _add(tx) if write else _count(tx)
            proxy.deafen()
            return _count(tx)

        call = store.write(half) if write else store.read(half)
        with pytest.raises(StoreError, match=r"cannot be reached \(127.0.0.1") as raised:
            await asyncio.wait_for(call, WAIT)
        assert not isinstance(raised.value, OutcomeUnknown)
        assert "sekret" not in str(raised.value)
        assert _away(store)
        assert _stored(postgres_place) == 1
        proxy.hear()
        await _back(store)
        # The server still holds the lock of what was begun before; the first new connection ends that.
        assert await asyncio.wait_for(store.write(_add), WAIT) == 2
        assert _stored(postgres_place) == 2
    finally:
        await asyncio.wait_for(store.close(), WAIT)


async def test_a_restart_of_the_server_is_waited_for(postgres_place: Place, proxy: Proxy) -> None:
    store = PostgresStore.open(proxy.url)
    try:
        await store.write(_add)
        proxy.cut()
        call = asyncio.ensure_future(store.write(_add))
        await asyncio.to_thread(wait_until, lambda: store.outage is not None, "the outage is noticed")
        proxy.join()
        assert await asyncio.wait_for(call, WAIT) == 2
        assert _stored(postgres_place) == 2
    finally:
        await store.close()


async def test_what_takes_long_is_not_taken_for_lost(postgres_place: Place, proxy: Proxy, impatient: None) -> None:
    store = PostgresStore.open(proxy.url)
    holds, go = threading.Event(), threading.Event()
    runs: list[str] = []

    def hold(tx: Tx) -> None:
        _add(tx)
        holds.set()
        assert go.wait(WAIT)

    def wait_for_lock(tx: Tx) -> int:
        runs.append("lock")
        return _add(tx)

    def sleep(tx: Tx) -> None:
        runs.append("sleep")
        tx.run("SELECT pg_sleep(2)")

    try:
        holding = asyncio.ensure_future(store.write(hold))
        await asyncio.to_thread(holds.wait, WAIT)
        waiting = asyncio.ensure_future(store.write(wait_for_lock))
        await store.read(sleep)
        assert not waiting.done()
        go.set()
        await holding
        assert await asyncio.wait_for(waiting, WAIT) == 2
        assert sorted(runs) == ["lock", "sleep"]
    finally:
        await store.close()


async def test_while_the_server_is_away_for_long_calls_fail_at_once_and_a_close_waits_for_nothing(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PostgresStore.open(proxy.url)
    for module in (postgres, postgres_pool):
        monkeypatch.setattr(module, "CALL_SECONDS", 10 * WAIT)  # what a call would wait for in a short outage
    proxy.cut()
    waiting = [asyncio.ensure_future(store.write(_add)) for _ in range(3)]
    await asyncio.to_thread(wait_until, lambda: store.outage is not None, "the outage is noticed")
    monkeypatch.setattr(postgres_pool, "CALL_SECONDS", 0.0)  # from now on it has been away for long
    with pytest.raises(StoreError, match="cannot be reached"):
        await asyncio.wait_for(store.read(_count), WAIT)
    monkeypatch.setattr(postgres_pool, "CALL_SECONDS", 10 * WAIT)
    waiting += [asyncio.ensure_future(store.write(_add)) for _ in range(20)]
    await asyncio.sleep(0)  # they are queued, more than there are threads
    await asyncio.wait_for(store.close(), WAIT)
    failed = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(error) for error in failed} == {StoreUnreachable}


def test_limits_that_the_url_sets_are_left_as_they_are() -> None:
    url = "postgresql://127.0.0.1/holdfast?connect_timeout=30&tcp_user_timeout=60000"
    settings = Server(url).settings()
    assert {"connect_timeout", "tcp_user_timeout"}.isdisjoint(settings)
    assert settings["keepalives_idle"] == TCP["keepalives_idle"]
    ours = Server("postgresql://127.0.0.1/holdfast").settings(3)
    assert {name: ours[name] for name in TCP} == TCP
    assert ours["connect_timeout"] == 3


def test_a_connection_is_watched_by_tcp_as_well(proxy: Proxy) -> None:
    with Server(proxy.url).connect() as connection, socket.socket(fileno=os.dup(connection.fileno())) as wire:
        assert wire.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # not on macOS
            assert wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == TCP["tcp_user_timeout"]
            assert wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == TCP["keepalives_idle"]
