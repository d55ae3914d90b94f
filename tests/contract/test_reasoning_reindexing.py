"""A store that an older program indexed is indexed again after its upgrade: in steps, and from where they ended."""

from __future__ import annotations

import asyncio

import pytest
from tests.contract.conftest import Place
from tests.postgres import fresh_database

from holdfast.reasoning.queries import search as search_queries
from holdfast.reasoning.queries.sessions import Scope
from holdfast.reasoning.search import index_some, search
from holdfast.reasoning.session_browser import VISIBLE
from holdfast.store import Tx
from holdfast.store.migrations import load
from holdfast.store.opening import open_store

THOUGHTS = 7


def _fill(tx: Tx) -> None:
    tx.run(
        "INSERT INTO sessions (id, title, tags, status, pinned, thought_count, branch_count, head_hash, created_at,"
        " updated_at) VALUES ('s', 't', '[]', 'active', 0, 0, 0, 'ab', 1, 1)"
    )
    for number in range(THOUGHTS):
        tx.run(
            "INSERT INTO thoughts (session_id, number, content, next_needed, is_revision, needs_more, created_at,"
            " prev_hash, hash) VALUES ('s', :number, 'café 数据库', 0, 0, 0, 1, 'a', 'b')",
            number=number + 1,
        )
    if tx.engine == "sqlite":  # as the older program did it
        tx.run("INSERT INTO thoughts_fts (rowid, content) SELECT row_id, content FROM thoughts")


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_what_an_older_program_indexed_is_indexed_again_in_steps_that_a_restart_goes_on_with(
    engine: str, sqlite_place: Place, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = fresh_database(request.getfixturevalue("postgres"), migrated=False) if engine == "postgres" else None
    monkeypatch.setattr(search_queries, "INDEXED_AT_ONCE", 3)

    async def found(query: str) -> int:
        store, _ = await open_store(sqlite_place.home, url)
        reply = await store.read(lambda tx: search(tx, Scope(None, VISIBLE), query, 50, 0))
        await store.close()
        return len(reply.thoughts) + len(reply.sessions)

    async def step() -> bool:
        store, _ = await open_store(sqlite_place.home, url)
        more = await store.write(index_some)
        await store.close()
        return more

    async def scenario() -> None:
        store, _ = await open_store(sqlite_place.home, url, known=[one for one in load() if one.number < 11])
        await store.write(_fill)
        await store.close()
        counts = []
        while True:
            counts.append(await found("据库"))
            if not await step():
                break
        assert counts == [0, 3, 6]
        assert [await found(query) for query in ("据库", "cafe", "CAFÉ")] == [THOUGHTS] * 3

    asyncio.run(scenario())
