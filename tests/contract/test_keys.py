"""Keys of HTTP clients: an empty one opens nothing, whatever is stored."""

from __future__ import annotations

import hashlib

import pytest
from tests.contract.conftest import Place

from holdfast.connections.keys import Keys

pytestmark = pytest.mark.anyio


async def test_an_empty_key_opens_nothing_whatever_is_stored(place: Place) -> None:
    store = place.open()
    try:
        nothing = hashlib.sha256(b"").hexdigest()
        await store.write(
            lambda tx: tx.run(
                "INSERT INTO api_keys (id, name, scope, hash, created_at) VALUES (:id, 'n', 'admin', :hash, 1)",
                id=tx.new_id(),
                hash=nothing,
            )
        )
        assert await Keys(store, "").check("") is None
    finally:
        await store.close()
