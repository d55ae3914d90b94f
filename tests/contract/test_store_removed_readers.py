"""A database that was removed under an open store: who opens it anew must not make another in its place."""

from __future__ import annotations

import pytest
from tests.contract.conftest import Place

from holdfast.errors import StoreError
from holdfast.store import ping
from holdfast.store.sqlite import SqliteStore

pytestmark = pytest.mark.anyio


async def test_a_reader_that_opens_after_the_file_was_removed_makes_no_new_one(sqlite_place: Place) -> None:
    store = sqlite_place.open()
    assert isinstance(store, SqliteStore)
    store.path.unlink()
    try:
        with pytest.raises(StoreError):
            await store.read(ping)
        assert not store.path.exists()
    finally:
        await store.close()
