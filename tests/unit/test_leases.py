"""When a lease has run out, when it is to be renewed, and what a description of one may hold."""

from __future__ import annotations

import pytest

from holdfast.store.leases import Lease, due, expired

NOW, MINUTE = 1_800_000_000_000, 60_000


@pytest.mark.parametrize(
    ("until", "over", "to_renew"),
    [
        (None, True, True),
        (NOW - MINUTE, True, True),
        (NOW - 1, True, True),
        (NOW, False, True),
        (NOW + MINUTE // 2, False, True),
        (NOW + MINUTE // 2 + 1, False, False),
        (NOW + MINUTE, False, False),
    ],
)
def test_a_lease_runs_out_after_its_last_millisecond_and_is_renewed_from_its_half(
    until: int | None, over: bool, to_renew: bool
) -> None:
    assert expired(until, NOW) is over
    assert due(until, NOW, MINUTE) is to_renew


@pytest.mark.parametrize("name", ["asks; DROP TABLE asks", "a b", "", "a.b", ":key"])
def test_only_plain_names_are_put_into_the_sql_of_a_lease(name: str) -> None:
    with pytest.raises(ValueError, match="plain names"):
        Lease(name, "id")
    with pytest.raises(ValueError, match="plain names"):
        Lease("asks", "id", until=name)
