"""What every engine of the store promises."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.contract.conftest import Place

from holdfast.errors import Busy, Conflict, StoreError
from holdfast.store import Store, Tx, events
from holdfast.store.backlog import Backlog
from holdfast.store.calls import CallKey, forget_old, once
from holdfast.store.verify import verify

WAIT = 60.0
"""A limit for what must happen at all; no test measures time."""


def project(root: str, key: str | None = None) -> Callable[[Tx], int]:
    def write(tx: Tx) -> int:
        return tx.run("INSERT INTO projects (root_uri, project_key) VALUES (:root, :key)", root=root, key=key)

    return write


def roots(tx: Tx) -> list[str]:
    return [row["root_uri"] for row in tx.all("SELECT root_uri FROM projects ORDER BY root_uri")]


def test_what_was_written_can_be_read_after_opening_again(place: Place) -> None:
    async def scenario() -> None:
        store = place.open()
        assert await store.write(project("file:///a", "größe 100% :x")) == 1
        await store.close()
        store = place.open()
        row = await store.read(lambda tx: tx.one("SELECT * FROM projects WHERE root_uri LIKE 'file:%'"))
        assert row == {"root_uri": "file:///a", "project_key": "größe 100% :x", "paused_at": None, "first_commit": None}
        assert await store.read(lambda tx: tx.one("SELECT 1 FROM projects WHERE root_uri = 'x'")) is None
        await store.close()

    asyncio.run(scenario())


def test_the_same_sql_means_the_same_on_every_engine(place: Place) -> None:
    async def scenario() -> None:
        store = place.open()
        await store.write(project("a", None))
        await store.write(project("b", "key"))
        optional = "SELECT root_uri FROM projects WHERE (:key IS NULL OR project_key = :key) ORDER BY root_uri"
        assert len(await store.read(lambda tx: tx.all(optional, key=None))) == 2
        assert len(await store.read(lambda tx: tx.all(optional, key="key"))) == 1
        total = await store.read(lambda tx: tx.one("SELECT sum(seq) AS n FROM event_head"))
        assert total is not None
        assert total["n"] == 0
        assert type(total["n"]) is int
        changed = "UPDATE projects SET paused_at = :flag WHERE root_uri = 'a' RETURNING paused_at"
        assert await store.write(lambda tx: tx.one(changed, flag=True)) == {"paused_at": 1}
        assert await store.write(lambda tx: tx.run("DELETE FROM projects WHERE root_uri = 'none'")) == 0
        await store.close()

    asyncio.run(scenario())


def test_a_failing_closure_leaves_no_trace_while_its_neighbours_commit(place: Place) -> None:
    async def scenario() -> None:
        store = place.open()

        def fails(tx: Tx) -> None:
            project("bad")(tx)
            tx.emit("bad", "bad")
            raise Conflict("no")

        def breaks(tx: Tx) -> None:
            project("bad")(tx)
            project("bad")(tx)

        def good(number: int) -> Callable[[Tx], None]:
            def write(tx: Tx) -> None:
                project(f"good {number}")(tx)
                tx.emit("good", str(number))

            return write

        jobs: list[Callable[[Tx], None]] = [good(1), fails, good(2), breaks, good(3)]
        done = await asyncio.gather(*(store.write(job) for job in jobs), return_exceptions=True)
        assert [type(outcome) for outcome in done] == [type(None), Conflict, type(None), StoreError, type(None)]
        assert await store.read(roots) == ["good 1", "good 2", "good 3"]
        found = await store.read(lambda tx: events.after(tx, 0))
        assert sorted(event.subject for event in found) == ["1", "2", "3"]
        assert [event.seq for event in found] == [1, 2, 3]
        await store.close()

    asyncio.run(scenario())


def test_a_reader_sees_one_snapshot_and_may_not_write(place: Place) -> None:
    async def scenario() -> None:
        store = place.open()
        await store.write(project("a"))
        looked, written = threading.Event(), threading.Event()

        def read(tx: Tx) -> tuple[list[str], list[str]]:
            before = roots(tx)
            looked.set()
            assert written.wait(WAIT)
            return before, roots(tx)

        reading = asyncio.create_task(store.read(read))
        assert await asyncio.to_thread(looked.wait, WAIT)
        await store.write(project("b"))
        written.set()
        assert await reading == (["a"], ["a"])
        with pytest.raises(StoreError):
            await store.read(project("c"))
        assert await store.read(roots) == ["a", "b"]
        await store.close()

    asyncio.run(scenario())


def test_a_cursor_never_skips_an_event_while_eight_write_through_two_stores(place: Place) -> None:
    writers, each = 8, 40

    async def scenario() -> None:
        # SQLite has one daemon per file; PostgreSQL serves several.
        stores = [place.open()] if place.engine == "sqlite" else [place.open(), place.open()]

        async def write(number: int) -> None:
            store = stores[number % len(stores)]
            for turn in range(each):

                def change(tx: Tx, turn: int = turn) -> None:
                    for part in range(turn % 3 + 1):
                        tx.emit("turn", f"{number}", {"turn": turn, "part": part})

                await store.write(change)

        async def read() -> list[int]:
            expected = sum(turn % 3 + 1 for turn in range(each)) * writers
            seen: list[int] = []
            async for batch in events.follow(stores[-1], 0):
                seen += [event.seq for event in batch]
                if len(seen) >= expected:
                    break
            return seen

        reading = asyncio.create_task(asyncio.wait_for(read(), WAIT))
        await asyncio.gather(*(write(number) for number in range(writers)))
        seen = await reading
        assert seen == list(range(1, len(seen) + 1))
        assert await stores[0].read(events.head) == len(seen)
        for store in stores:
            await store.close()

    asyncio.run(scenario())


def test_old_events_go_from_the_front_and_the_newest_stays(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "TRIMMED_AT_ONCE", 10)
    day = 24 * 3_600_000

    async def tell(store: Store, number: int) -> None:
        for _ in range(number):
            await store.write(lambda tx: tx.emit("told", "it"))

    async def trimmed(store: Store, keep_ms: int) -> int:
        dropped = 0
        while some := await store.write(lambda tx: events.trim(tx, keep_ms)):
            dropped += some
        return dropped

    async def scenario() -> None:
        store = place.open()
        assert await trimmed(store, day) == 0
        await tell(store, 25)
        place.shift += 2 * day
        await tell(store, 5)
        assert (await trimmed(store, 3 * day), await trimmed(store, day)) == (0, 25)
        left = await store.read(lambda tx: events.after(tx, 0))
        assert [event.seq for event in left] == [26, 27, 28, 29, 30]
        place.shift += 2 * day
        assert await trimmed(store, day) == 4
        await tell(store, 1)
        assert [event.seq for event in await store.read(lambda tx: events.after(tx, 3))] == [30, 31]
        assert (await verify(store)).ok
        await store.close()

    asyncio.run(scenario())


def test_a_waiting_follower_is_woken_by_a_commit(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "POLL_SECONDS", 10 * WAIT)

    async def scenario() -> None:
        store = place.open()
        following = events.follow(store, 0)
        waiting = asyncio.ensure_future(anext(following))
        await store.read(roots)  # by now the follower has looked and found nothing
        await store.write(lambda tx: tx.emit("woken", "me", {"text": "ä"}))
        batch = await asyncio.wait_for(waiting, WAIT)
        assert [(event.kind, event.subject, event.data) for event in batch] == [("woken", "me", {"text": "ä"})]
        await following.aclose()  # type: ignore[attr-defined]
        await store.close()

    asyncio.run(scenario())


def test_a_listener_that_fails_does_not_stop_the_store(place: Place) -> None:
    async def scenario() -> None:
        store = place.open()
        called = threading.Event()

        def fails() -> None:
            called.set()
            raise ValueError("listener")

        store.listen(fails)
        await store.write(lambda tx: tx.emit("one", "one"))
        assert await asyncio.to_thread(called.wait, WAIT)
        await store.write(lambda tx: tx.emit("two", "two"))
        assert await store.read(events.head) == 2
        await store.close()

    asyncio.run(scenario())


def test_a_call_repeated_many_times_at_once_takes_effect_once(place: Place) -> None:
    async def scenario() -> None:
        store = place.open()
        call = CallKey.of("agent", "key", "tool", {"b": 1, "a": "x"})

        def effect(tx: Tx) -> dict[str, Any]:
            made = tx.new_id()
            project(made)(tx)
            tx.emit("made", made)
            return {"made": made}

        results = await asyncio.gather(*(store.write(once(call, effect)) for _ in range(20)))
        assert len({result["made"] for result in results}) == 1
        assert len(await store.read(roots)) == 1
        other = CallKey.of("agent", "key", "tool", {"a": "y"})
        assert (await store.write(once(other, effect))) != results[0]
        place.shift = 25 * 60 * 60 * 1000
        assert await store.write(forget_old) == 2
        await store.close()

    asyncio.run(scenario())


def test_time_stands_still_within_a_transaction_and_can_be_shifted(place: Place) -> None:
    async def scenario() -> None:
        store = place.open()
        first, again = await store.write(lambda tx: (tx.now(), tx.now()))
        assert first == again
        place.shift = 1_000_000
        later = await store.read(lambda tx: tx.now())
        assert 1_000_000 <= later - first < 1_000_000 + WAIT * 1000
        await store.close()

    asyncio.run(scenario())


def test_a_lock_makes_read_then_write_safe(place: Place) -> None:
    async def scenario() -> None:
        store = place.open()
        await store.write(project("counter", "0"))

        def increment(tx: Tx) -> None:
            tx.lock("counter")
            row = tx.one("SELECT project_key FROM projects WHERE root_uri = 'counter'")
            assert row is not None
            value = str(int(row["project_key"]) + 1)
            tx.run("UPDATE projects SET project_key = :value WHERE root_uri = 'counter'", value=value)

        await asyncio.gather(*(store.write(increment) for _ in range(40)))
        row = await store.read(lambda tx: tx.one("SELECT project_key FROM projects"))
        assert row == {"project_key": "40"}
        await store.close()

    asyncio.run(scenario())


async def _occupied(store: Store) -> tuple[asyncio.Future[None], threading.Event]:
    """A store in which every write waits behind one that only ends when it is told to."""
    started, end = threading.Event(), threading.Event()

    def wait(tx: Tx) -> None:
        tx.lock("occupied")
        started.set()
        assert end.wait(WAIT)

    task = asyncio.ensure_future(store.write(wait))
    assert await asyncio.to_thread(started.wait, WAIT)
    return task, end


def test_a_caller_who_stops_waiting_does_not_break_the_writer(place: Place) -> None:
    async def scenario() -> None:
        store = place.open()
        occupying, end = await _occupied(store)
        queued = [asyncio.create_task(store.write(project(f"queued {number}"))) for number in range(20)]
        await asyncio.sleep(0)
        for task in queued[::2]:
            task.cancel()
        occupying.cancel()
        end.set()
        await asyncio.gather(occupying, *queued, return_exceptions=True)
        await store.write(project("after"))
        found = await store.read(roots)
        assert "after" in found
        assert {f"queued {number}" for number in range(1, 20, 2)} <= set(found)
        await store.close()

    asyncio.run(scenario())


def test_closing_finishes_what_is_queued_and_refuses_what_comes_later(place: Place) -> None:
    async def scenario() -> None:
        store = place.open()
        occupying, end = await _occupied(store)
        queued = [asyncio.create_task(store.write(project(f"{number:02}"))) for number in range(50)]
        await asyncio.sleep(0)
        closing = asyncio.create_task(store.close())
        await asyncio.sleep(0)
        end.set()
        await closing
        assert await asyncio.gather(*queued) == [1] * 50
        await occupying
        for late in (store.write(project("late")), store.read(roots)):
            with pytest.raises(StoreError, match="closed"):
                await late
        await store.close()
        store = place.open()
        assert await store.read(roots) == [f"{number:02}" for number in range(50)]
        await store.close()

    asyncio.run(scenario())


def test_a_full_queue_says_busy_and_recovers(place: Place) -> None:
    async def scenario() -> None:
        store = place.open()
        store._backlog = Backlog(limit=3)  # type: ignore[attr-defined]
        occupying, end = await _occupied(store)
        queued = [asyncio.create_task(store.write(project(str(number)))) for number in range(2)]
        await asyncio.sleep(0)
        if place.engine == "sqlite":  # PostgreSQL's other threads may have done them already
            with pytest.raises(Busy, match="3 calls are already waiting"):
                await store.write(project("one too many"))
        end.set()
        await asyncio.gather(occupying, *queued)
        await store.write(project("afterwards"))
        assert await store.read(roots) == ["0", "1", "afterwards"]
        await store.close()

    asyncio.run(scenario())


def test_errors_are_holdfasts_own(place: Place) -> None:
    async def scenario() -> None:
        store = place.open()
        await store.write(project("a"))
        for wrong in (
            project("a"),
            lambda tx: tx.run("INSERT INTO branches VALUES ('none', 'b', 1, 1, 1)"),
            lambda tx: tx.run("SELECT nonsense FROM nowhere"),
        ):
            with pytest.raises(StoreError, match="The database refused"):
                await store.write(wrong)
        with pytest.raises(ZeroDivisionError):
            await store.write(lambda tx: 1 // 0)
        await store.close()

    asyncio.run(scenario())
