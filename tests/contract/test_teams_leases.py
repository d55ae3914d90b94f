"""A conversation belongs to the daemon that has its agent, until that daemon's lease runs out."""

from __future__ import annotations

import pytest
from tests.contract.conftest import Place

from holdfast.store import Tx
from holdfast.teams.model import LEASE_MS, AskStatus
from holdfast.teams.queries import conversations as queries

pytestmark = pytest.mark.anyio


async def test_a_conversation_that_a_dead_daemon_kept_warm_is_taken_up_when_its_lease_ran_out(place: Place) -> None:
    store = place.open()

    def answered_by_the_first(tx: Tx) -> None:
        conversation = queries.begin(tx, "caller", "a", "main")
        ask = queries.add_ask(tx, conversation.id, "a", "before", "", None)
        queries.claim(tx, ask, "first", "token")
        assert queries.finish(tx, ask, "token", AskStatus.ANSWERED, answer="done")
        queries.add_ask(tx, conversation.id, "a", "after", "", None)

    def next_for_the_second(tx: Tx) -> str | None:
        found = queries.next_waiting(tx, "second", ["a"], [])
        return found.text if found else None

    try:
        await store.write(answered_by_the_first)
        assert await store.read(next_for_the_second) is None, "the first daemon may have the agent warm"
        place.shift += LEASE_MS - 1000
        await store.write(lambda tx: queries.renew(tx, "first", [], [1]))
        place.shift += 2000
        assert await store.read(next_for_the_second) is None, "it lives: the lease was renewed"
        place.shift += LEASE_MS
        assert await store.read(next_for_the_second) == "after"
    finally:
        await store.close()


async def test_only_whoever_has_the_lease_of_an_ask_ends_it_and_only_once(place: Place) -> None:
    store = place.open()

    def outcomes(tx: Tx) -> list[bool]:
        ask = queries.add_ask(tx, queries.begin(tx, "caller", "a", "main").id, "a", "a question", "", None)
        queries.claim(tx, ask, "first", "its-token")
        queries.requeue(tx, ask, "first", "the first daemon was gone for too long")
        queries.claim(tx, ask, "second", "another-token")
        return [
            queries.finish(tx, ask, token, AskStatus.ANSWERED, answer=token)
            for token in ("its-token", "another-token", "another-token")
        ]

    try:
        assert await store.write(outcomes) == [False, True, False]
    finally:
        await store.close()


async def test_an_ask_that_was_cancelled_meanwhile_is_not_run(place: Place) -> None:
    store = place.open()

    def seen_before_it_was_cancelled(tx: Tx) -> bool:
        ask = queries.add_ask(tx, queries.begin(tx, "caller", "a", "main").id, "a", "a question", "", None)
        assert queries.finish(tx, ask, None, AskStatus.CANCELLED)
        return queries.claim(tx, ask, "first", "token")

    try:
        assert await store.write(seen_before_it_was_cancelled) is False
        assert await store.read(lambda tx: tx.all("SELECT status FROM asks")) == [{"status": "cancelled"}]
    finally:
        await store.close()
