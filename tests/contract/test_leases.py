"""One holder at a time has a lease, on both engines: of a row that is there anyway, and of one made for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.contract.conftest import Place

from holdfast.store import Store, Tx
from holdfast.store.leases import NAMED, Lease, holds, release, renew, take
from holdfast.teams.queries import conversations as queries

pytestmark = pytest.mark.anyio

MINUTE = 60_000
OF_ROW = Lease("conversations", "id")
KINDS = [pytest.param(OF_ROW, id="row"), pytest.param(NAMED, id="named")]


async def _key(store: Store, lease: Lease) -> object:
    if lease is NAMED:
        return "a name"
    return (await store.write(lambda tx: queries.begin(tx, "a", "b", "main"))).id


@pytest.mark.parametrize("lease", KINDS)
async def test_a_lease_is_one_holders_until_it_is_released_or_runs_out(place: Place, lease: Lease) -> None:
    store = place.open()
    try:
        key = await _key(store, lease)

        async def taken(by: str) -> bool:
            return await store.write(lambda tx: take(tx, lease, key, by, MINUTE))

        async def held(by: str) -> bool:
            return await store.read(lambda tx: holds(tx, lease, key, by))

        assert await taken("one") and await taken("one"), "a holder may take it again"
        assert not await taken("two") and await held("one") and not await held("two")
        assert not await store.write(lambda tx: release(tx, lease, key, "two")), "only its holder gives it back"
        assert await store.write(lambda tx: release(tx, lease, key, "one"))
        assert not await held("one") and await taken("two")
        place.shift += 2 * MINUTE
        assert not await held("two") and await taken("one"), "it ran out"
        assert await held("one") and not await held("two")
    finally:
        await store.close()


@pytest.mark.parametrize("lease", KINDS)
async def test_only_its_holder_renews_a_lease_and_a_renewed_one_goes_on(place: Place, lease: Lease) -> None:
    store = place.open()
    try:
        key = await _key(store, lease)
        renewals: list[tuple[int, Callable[[Tx], int]]] = [
            (0, lambda tx: renew(tx, lease, 9 * MINUTE, key=key, holder="two")),
            (1, lambda tx: renew(tx, lease, MINUTE, key=key, holder="one")),
            (1, lambda tx: renew(tx, lease, MINUTE, holder="one")),
            (1, lambda tx: renew(tx, lease, MINUTE, key=key)),
        ]
        await store.write(lambda tx: take(tx, lease, key, "one", MINUTE))
        for changed, attempt in renewals:
            assert await store.write(attempt) == changed
            place.shift += 40_000 if changed else 0
            assert await store.read(lambda tx: holds(tx, lease, key, "one"))
        place.shift += 40_000
        assert not await store.read(lambda tx: holds(tx, lease, key, "one"))
        await store.write(lambda tx: release(tx, lease, key, "one"))
        assert await store.write(lambda tx: renew(tx, lease, MINUTE, key=key)) == 0, "what was given back is nobody's"
        with pytest.raises(ValueError, match="by its key"):
            await store.write(lambda tx: renew(tx, lease, MINUTE))
    finally:
        await store.close()
