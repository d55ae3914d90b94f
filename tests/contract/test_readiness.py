"""Whether the store answers: asked of the database once a second at most, and never waited for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.contract.conftest import Place

from holdfast.daemon import readiness
from holdfast.daemon.readiness import Readiness
from holdfast.store import Store

pytestmark = pytest.mark.anyio


def _counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with every read of the store."""
    read, reads = store.read, []

    async def counted(fn: Callable[[Any], Any]) -> Any:
        reads.append(1)
        return await read(fn)

    monkeypatch.setattr(store, "read", counted)
    return reads


async def test_however_many_ask_the_store_is_asked_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "KEPT_SECONDS", 600.0)
    store = place.open()
    try:
        reads, ready = _counted(store, monkeypatch), Readiness(store)
        assert await asyncio.gather(*(ready.outage() for _ in range(100))) == [None] * 100
        assert await ready.outage() is None
        assert len(reads) == 1
        monkeypatch.setattr(readiness, "KEPT_SECONDS", -1.0)
        assert await ready.outage() is None
        assert len(reads) == 2
    finally:
        await store.close()


async def test_a_store_that_does_not_answer_is_not_waited_for_nor_asked_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(readiness, "KEPT_SECONDS", -1.0)
    store = place.open()
    try:
        goes_on, read = asyncio.Event(), store.read

        async def slow(fn: Callable[[Any], Any]) -> Any:
            await goes_on.wait()
            return await read(fn)

        monkeypatch.setattr(store, "read", slow)
        reads, ready = _counted(store, monkeypatch), Readiness(store)
        first, second = await ready.outage(), await ready.outage()
        assert first is not None and second is not None
        assert "did not answer within" in first.reason
        assert second.since == first.since
        assert len(reads) == 1
        monkeypatch.setattr(readiness, "ANSWER_SECONDS", 60.0)
        goes_on.set()
        assert await ready.outage() is None
    finally:
        await store.close()


async def test_a_store_that_refuses_says_why(place: Place) -> None:
    store = place.open()
    await store.close()
    outage = await Readiness(store).outage()
    assert outage is not None
    assert outage.reason == "The store is closed."
