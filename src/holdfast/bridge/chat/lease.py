"""One daemon per account: whoever holds the lease polls or sends, the others stand by."""

from __future__ import annotations

import hashlib

from holdfast.bridge.chat import queries
from holdfast.store import Store

LEASE_MS = 60_000


class Lease:
    """The right to use an account in one way. The name tells neither token nor address."""

    def __init__(self, store: Store, use: str, account: str, holder: str) -> None:
        self._store = store
        self.name = f"chat:{use}:{hashlib.sha256(account.encode()).hexdigest()}"
        self.holder = holder

    async def hold(self) -> bool:
        """Take or renew it; False while another daemon has it."""
        return await self._store.write(lambda tx: queries.hold(tx, self.name, self.holder, LEASE_MS))

    async def let_go(self) -> None:
        """Give it back."""
        await self._store.write(lambda tx: queries.let_go(tx, self.name, self.holder))
