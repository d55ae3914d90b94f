"""The register: a session that is missing as a whole is noticed, and has a name."""

from __future__ import annotations

import asyncio
import hashlib

import apsw
import pytest
from tests.contract.conftest import Place
from tests.contract.reasoning_world import World, agent, living
from tests.postgres import fresh_database

from holdfast.reasoning.hash_chain_check import chain_check, register_check
from holdfast.store import Row, Store, Tx, register
from holdfast.store.migrations import load
from holdfast.store.opening import open_store
from holdfast.store.verify import verify


async def _problems(store: Store) -> list[str]:
    report = await verify(store, {"register": register_check, "thoughts": chain_check})
    return [f"{problem.subject}: {problem.text}" for problem in report.problems]


async def _fill(world: World) -> list[str]:
    """Three sessions with a few thoughts each; returns their ids."""
    ids = []
    for name in ("a", "b", "c"):
        for text in ("one", "two", "three"):
            reply = await world.think(agent(name), f"{name} {text}")
        ids.append(reply["sessionId"])
    return ids


async def _delete(world: World, session_id: str) -> None:
    await world.run("DELETE FROM thoughts WHERE session_id = :id", id=session_id)
    await world.run("DELETE FROM sessions WHERE id = :id", id=session_id)


def test_a_session_deleted_with_its_thoughts_is_missed_by_name(place: Place) -> None:
    async def scenario() -> None:
        async with living(place) as world:
            _, second, _ = await _fill(world)
            assert await _problems(world.store) == []
            await _delete(world, second)
            assert await _problems(world.store) == [f"session {second}: is missing with all its thoughts"]

    asyncio.run(scenario())


def test_a_session_deleted_from_the_register_as_well_is_missed_by_the_count(place: Place) -> None:
    async def scenario() -> None:
        async with living(place) as world:
            _, second, _ = await _fill(world)
            await _delete(world, second)
            await world.run("DELETE FROM session_register WHERE id = :id", id=second)
            assert await _problems(world.store) == ["register: 1 sessions are missing in it; their ids are not known"]
            await world.run("UPDATE event_head SET sessions = sessions - 1")
            assert await _problems(world.store) == [
                "register: the sum of the sessions' heads is not the one that was counted"
            ]

    asyncio.run(scenario())


def test_a_forgotten_session_leaves_its_id_and_hash_and_is_not_missed(place: Place) -> None:
    async def scenario() -> None:
        async with living(place) as world:
            first, *_ = await _fill(world)
            await world.reasoning.forget_session(first)
            assert await _problems(world.store) == []
            left = await world.rows("SELECT * FROM session_register WHERE id = :id", id=first)
            assert [(row["gone"], len(row["hash"])) for row in left] == [("forgotten", 64)]

    asyncio.run(scenario())


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_the_sum_of_a_store_from_before_the_register_is_the_one_that_is_counted_on(
    engine: str, sqlite_place: Place, request: pytest.FixtureRequest
) -> None:
    url = fresh_database(request.getfixturevalue("postgres"), migrated=False) if engine == "postgres" else None
    before = [step for step in load() if step.number < 9]

    def insert(tx: Tx) -> None:
        for number in range(300):
            tx.run(
                "INSERT INTO sessions (id, title, tags, status, pinned, thought_count, branch_count, head_hash,"
                " created_at, updated_at) VALUES (:id, 't', '[]', 'active', 0, 0, 0, :head, 1, 1)",
                id=f"s{number}",
                head=hashlib.sha256(str(number).encode()).hexdigest(),
            )

    def look(tx: Tx) -> tuple[Row | None, int]:
        heads = tx.all("SELECT head_hash FROM sessions")
        return tx.one("SELECT * FROM event_head"), register.total(row["head_hash"] for row in heads)

    async def scenario() -> None:
        store, _ = await open_store(sqlite_place.home, url, known=before)
        # What an older program wrote with: the newer columns are not there yet.
        await store.write(insert)
        await store.close()
        store, _ = await open_store(sqlite_place.home, url)
        head, total = await store.read(look)
        await store.close()
        assert head is not None
        assert (head["sessions"], head["heads_sum"]) == (300, total)
        assert len(head["epoch"]) == 32

    asyncio.run(scenario())


def test_a_session_whose_id_is_damaged_is_named_and_verify_goes_on_to_the_end(sqlite_place: Place) -> None:
    async def scenario() -> None:
        async with living(sqlite_place) as world:
            first, second, third = await _fill(world)
            behind = apsw.Connection(str(sqlite_place.path))
            for table, column in (("sessions", "id"), ("thoughts", "session_id"), ("session_register", "id")):
                behind.execute(f"UPDATE {table} SET {column} = CAST(X'30F8F8' AS TEXT) WHERE {column} = ?", (second,))
            behind.close()
            await world.run("UPDATE thoughts SET content = 'changed' WHERE session_id = :id AND number = 2", id=third)
            found = await _problems(world.store)
            assert "session 0\ufffd\ufffd: cannot be asked for: its id is damaged" in found
            assert f"session {third}: thought 2 was changed: it does not match its hash" in found
            assert not [text for text in found if first in text]

    asyncio.run(scenario())


def test_damaged_tags_or_status_are_named_and_keep_no_thought_from_being_read(place: Place) -> None:
    async def scenario() -> None:
        async with living(place) as world:
            first, second, _ = await _fill(world)
            await world.run("UPDATE sessions SET tags = '[\"half' WHERE id = :id", id=first)
            await world.run("UPDATE sessions SET status = 'actize' WHERE id = :id", id=second)
            found = await _problems(world.store)
            assert sorted(found) == sorted(
                [f"session {first}: its tags cannot be read", f"session {second}: its status cannot be read"]
            )
            assert (await world.think(agent("a"), "a four", first))["thoughtNumber"] == 4

    asyncio.run(scenario())
