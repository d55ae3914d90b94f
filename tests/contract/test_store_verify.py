"""Verification finds what is wrong and names it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.contract.conftest import Place, root_page, spoil
from tests.contract.test_store_backup import fill

from holdfast.errors import StoreCorrupt
from holdfast.store import Tx
from holdfast.store import verify as verifying
from holdfast.store.sqlite import SqliteStore
from holdfast.store.verify import Problem, in_batches, verify


def _all_thoughts(tx: Tx) -> Iterator[Problem]:
    sql = "SELECT row_id, number FROM thoughts WHERE row_id > :after ORDER BY row_id LIMIT :limit"
    rows = list(in_batches(tx, sql, "row_id", 0))
    yield Problem("thoughts", f"{len(rows)} seen")


def test_a_whole_store_has_no_problem_and_every_check_is_named(place: Place) -> None:
    async def scenario() -> None:
        store = place.open()
        await fill(store)
        told: list[tuple[float, str]] = []
        report = await verify(store, {"mine": lambda tx: []}, lambda done, doing: told.append((done, doing)))
        assert report.ok
        assert report.lines() == ["Checked: database, events, mine.", "No problem was found."]
        assert [doing for _, doing in told] == ["database", "events", "mine", "done"]
        assert told[-1][0] == 1.0
        await store.close()

    asyncio.run(scenario())


def test_a_capabilitys_check_reads_in_batches_and_is_reported(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying, "ROWS_AT_ONCE", 7)

    async def scenario() -> None:
        store = place.open()
        await fill(store)
        report = await verify(store, {"thoughts": _all_thoughts})
        assert report.problems == [Problem("thoughts", "90 seen")]
        await store.close()

    asyncio.run(scenario())


def test_missing_events_are_named_but_trimmed_ones_are_none(place: Place) -> None:
    async def scenario() -> None:
        store = place.open()
        await fill(store)
        await store.write(lambda tx: tx.run("DELETE FROM events WHERE seq <= 10"))
        assert (await verify(store)).ok
        await store.write(lambda tx: tx.run("DELETE FROM events WHERE seq IN (20, 21, 22, 40)"))
        report = await verify(store)
        assert [problem.text for problem in report.problems] == ["missing: 20-22", "missing: 40"]
        await store.write(lambda tx: tx.run("UPDATE event_head SET seq = seq + 5"))
        assert "but the counter says" in (await verify(store)).problems[0].text
        await store.write(lambda tx: tx.run("DELETE FROM event_head"))
        assert (await verify(store)).problems == [Problem("events", "the counter is missing")]
        await store.close()

    asyncio.run(scenario())


def test_rows_that_refer_to_nothing_are_found(place: Place) -> None:
    async def scenario() -> None:
        store = place.open()
        await fill(store)
        if place.engine == "sqlite":
            import apsw

            other = apsw.Connection(str(place.path))  # without foreign keys, as a foreign tool would open it
            other.execute("DELETE FROM sessions WHERE id = 's1'")
            other.close()
        else:
            import psycopg

            with psycopg.connect(place.url, autocommit=True) as connection:
                connection.execute("SET session_replication_role = replica")
                connection.execute("DELETE FROM sessions WHERE id = 's1'")
        report = await verify(store)
        assert {problem.subject for problem in report.problems} == {"table branches", "table thoughts"}
        await store.close()

    asyncio.run(scenario())


def test_a_ruined_store_is_reported_up_to_a_limit(place: Place) -> None:
    async def scenario() -> None:
        store = place.open()
        report = await verify(store, {"ruin": lambda tx: (Problem("x", str(n)) for n in range(5000))})
        assert not report.complete
        assert len(report.problems) == verifying.MAX_PROBLEMS
        assert report.lines()[-1] == "and more; only the first 1000 are listed"
        await store.close()

    asyncio.run(scenario())


def test_damage_in_an_index_is_found(sqlite_place: Place) -> None:
    async def scenario() -> None:
        store = sqlite_place.open()
        await fill(store)
        await store.close()
        spoil(sqlite_place.path, root_page(sqlite_place.path, "events_of_reasoning"))
        store = SqliteStore.open(sqlite_place.path)
        reported: list[StoreCorrupt] = []
        store.corrupt = reported.append
        report = await verify(store)
        assert not report.ok
        assert report.problems[0].subject == "database"
        assert reported == [], "looking changes nothing: the next start salvages"
        await store.close()

    asyncio.run(scenario())
