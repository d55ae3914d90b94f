"""Long polling: fetch, store, commit, and only then confirm."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from holdfast.bridge.chat import ChatError, RetryLater
from holdfast.bridge.chat.intake import Intake
from holdfast.bridge.chat.lease import Lease
from holdfast.bridge.chat.telegram import PollConflict, Telegram

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
STAND_BY_S = 10.0

logger = logging.getLogger(__name__)


class Poller:
    """Polls for an account's updates; only the holder of the lease does."""

    def __init__(
        self,
        source: Telegram,
        intake: Intake,
        lease: Lease,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._source = source
        self._intake = intake
        self._lease = lease
        self._sleep = sleep
        self._introduced = False
        self.trouble: str | None = None
        """Why updates cannot be received now; None if they can."""

    async def run(self) -> None:
        offset: int | None = None
        pause = FIRST_PAUSE_S
        try:
            while True:
                if not await self._lease.hold():
                    offset = None
                    await self._sleep(STAND_BY_S)
                    continue
                try:
                    offset = await self.step(offset)
                except ChatError as error:
                    self._note(str(error))
                    if isinstance(error, PollConflict) and error.webhook:
                        await self._take_back()
                    await self._sleep(error.seconds if isinstance(error, RetryLater) else pause)
                    pause = min(pause * 2, LONGEST_PAUSE_S)
                else:
                    self._note(None)
                    pause = FIRST_PAUSE_S
        finally:
            await self._lease.let_go()

    async def step(self, offset: int | None) -> int | None:
        """Poll once. The returned offset confirms, with the next poll, what is stored now.

        Without new updates the next poll has no offset: after a week without any, Telegram may restart its numbers.
        """
        if not self._introduced:
            await self._source.introduce()
            self._introduced = True
        found = await self._source.fetch(offset)
        highest = await self._intake.take(found)
        if found and highest is None:
            raise ChatError("The updates have no numbers, so they cannot be confirmed.")
        return None if highest is None else highest + 1

    async def _take_back(self) -> None:
        """Remove a webhook that was left behind, because this daemon polls; no update is dropped."""
        try:
            await self._source.use_polling()
        except ChatError as error:
            self._note(str(error))

    def _note(self, trouble: str | None) -> None:
        if trouble is not None and trouble != self.trouble:
            logger.warning("chat updates cannot be received: %s", trouble)
        self.trouble = trouble
