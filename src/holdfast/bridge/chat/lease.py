"""One daemon per account: the lease holder polls or sends, the others stand by."""

from __future__ import annotations

import hashlib

from holdfast.store import Store, Tx, leases

LEASE_MS = 60_000


class Lease:
    """The lease on one use of an account. Its name reveals neither token nor address."""

    def __init__(self, store: Store, use: str, account: str, holder: str) -> None:
        self._store = store
        self._name = f"chat:{use}:{hashlib.sha256(account.encode()).hexdigest()}"
        self._holder = holder

    async def hold(self) -> bool:
        """Take or renew it; False while another daemon holds it."""
        return await self._store.write(lambda tx: leases.take(tx, leases.NAMED, self._name, self._holder, LEASE_MS))

    def is_held(self, tx: Tx) -> bool:
        return leases.holds(tx, leases.NAMED, self._name, self._holder)

    async def let_go(self) -> None:
        await self._store.write(lambda tx: leases.release(tx, leases.NAMED, self._name, self._holder))
