"""The sender: updates reach a chat once and in order, even after a crash, and no chat holds up another."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from holdfast.bridge.chat import Address, ChatError, Outgoing, RetryLater, Transport, Undeliverable, queries
from holdfast.bridge.chat.lease import Lease
from holdfast.bridge.chat.pace import Pace
from holdfast.bridge.chat.queries import Unsent
from holdfast.bridge.chat.splitting import split
from holdfast.bridge.chat.wording import REPETITION, Shown, shown
from holdfast.bridge.service import Targets
from holdfast.store import Store, Tx
from holdfast.store.wakeups import Wakeups

FIRST_PAUSE_MS = 1_000
LONGEST_PAUSE_MS = 5 * 60_000
LOOK_S = 5.0
RENEW_S = 20.0
STAND_BY_S = 10.0
MOST_FAILURE = 500

logger = logging.getLogger(__name__)


class LeaseLost(ChatError):
    code = "E_CHAT_LEASE"


class Sender:
    def __init__(
        self,
        store: Store,
        transport: Transport,
        targets: Targets,
        holder: str,
        *,
        pace: Pace | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._transport = transport
        self._targets = targets
        self._lease = Lease(store, f"{transport.name}:send", transport.account, holder)
        self._pace = pace or Pace()
        self._sleep = sleep
        self._working: dict[str, asyncio.Task[None]] = {}
        self._pieces_sent: dict[str, tuple[int, int]] = {}
        """Per target: the update that is under way, and how many of its pieces have arrived."""

    async def run(self) -> None:
        while True:
            while not await self._lease.hold():
                await self._sleep(STAND_BY_S)
            try:
                await self._send_on()
            except* LeaseLost:
                logger.info("%s: another daemon sends now; this one stands by", self._transport.name)
            finally:
                self._working.clear()
                await self._lease.let_go()

    async def drain(self) -> None:
        """Send everything unsent now and return; does nothing while another daemon sends."""
        if not await self._lease.hold():
            return
        try:
            async with asyncio.TaskGroup() as group:
                await self._look(group)
        finally:
            self._working.clear()

    async def _send_on(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._renew())
            with Wakeups(self._store) as news:
                while True:
                    news.clear()
                    await self._look(group)
                    await news.wait(LOOK_S)

    async def _renew(self) -> None:
        while True:
            await self._sleep(RENEW_S)
            if not await self._lease.hold():
                raise LeaseLost("Another daemon sends for this account now.")

    async def _look(self, group: asyncio.TaskGroup) -> None:
        name = self._transport.name
        reached = [target for target in self._targets() if self._address(target) is not None]
        behind = await self._store.read(lambda tx: [one for one in reached if queries.is_behind(tx, name, one)])
        for target in behind:
            running = self._working.get(target)
            if running is None or running.done():
                self._working[target] = group.create_task(self._catch_up(target))

    def _address(self, target: str) -> Address | None:
        team = self._targets().get(target)
        if team is None:
            return None
        address = Address(target, team.chat)
        return address if self._transport.reaches(address) else None

    async def _catch_up(self, target: str) -> None:
        """Send to one target until nothing is left; its pauses hold up no other target."""
        name = self._transport.name
        await self._under_lease(lambda tx: queries.begin(tx, name, target))
        # The address is looked up every time, so that a correction in teams.json takes effect without a restart.
        while (address := self._address(target)) is not None:
            found = await self._store.read(lambda tx: queries.unsent(tx, name, target))
            if found is None:
                return
            if found.progress.wait_ms > 0:
                await self._sleep(min(found.progress.wait_ms / 1000, LOOK_S))
            else:
                await self._deliver(address, found)

    async def _deliver(self, address: Address, found: Unsent) -> None:
        """Send one update and store the outcome."""
        name, target, seq = self._transport.name, address.target, found.update.seq
        repeated = found.progress.sending_seq == seq
        before = self._arrived(target, seq)
        await self._under_lease(lambda tx: queries.sending(tx, name, target, seq))
        try:
            await self._send(address, found, repeated=repeated)
        except Undeliverable as error:
            reason = str(error)[:MOST_FAILURE]
            logger.warning("%s: an update of %s cannot be delivered: %s", name, target, reason)
            await self._under_lease(lambda tx: queries.sent(tx, name, target, seq, reason))
        except ChatError as error:
            # A refusal now says nothing about an earlier attempt at the same piece: that stays uncertain.
            doubt = error.uncertain or (repeated and self._arrived(target, seq) == before)
            await self._put_off(address, error, found.progress.attempts, uncertain=doubt)
            return
        else:
            await self._under_lease(lambda tx: queries.sent(tx, name, target, seq))
        self._pieces_sent.pop(target, None)

    def _arrived(self, target: str, seq: int) -> int:
        """How many pieces of an update have arrived since this daemon started."""
        known, pieces = self._pieces_sent.get(target, (seq, 0))
        return pieces if known == seq else 0

    async def _send(self, address: Address, found: Unsent, *, repeated: bool) -> None:
        update = found.update
        view = shown(update, found.task)
        pieces = split(view.text, self._transport.longest - len(REPETITION) - 1)
        arrived = self._arrived(address.target, update.seq)
        for number in range(arrived, len(pieces)):
            place = self._transport.place(address)
            async with self._pace.turn(place, self._transport.limits(address)):
                try:
                    await self._piece(address, found, view, pieces, number, marked=repeated and number == arrived)
                except RetryLater as error:
                    self._pace.rest(place, error.seconds)
                    raise
            self._pieces_sent[address.target] = (update.seq, number + 1)

    async def _piece(
        self, address: Address, found: Unsent, view: Shown, pieces: list[str], number: int, *, marked: bool
    ) -> None:
        text = f"{REPETITION}\n{pieces[number]}" if marked else pieces[number]
        outgoing = Outgoing(
            text,
            key=f"{address.target}.{found.update.seq}.{number + 1}",
            buttons=view.buttons if number == len(pieces) - 1 else (),
            reply_to=found.update.message_id if number == 0 else None,
            urgent=view.urgent,
            status=view.status,
        )
        await self._transport.send(address, outgoing)

    async def _put_off(self, address: Address, error: ChatError, attempts: int, *, uncertain: bool) -> None:
        name, target = self._transport.name, address.target
        if isinstance(error, RetryLater):
            pause, resting = round(error.seconds * 1000), self._neighbours(address)
        else:
            pause, resting = min(FIRST_PAUSE_MS * 2 ** min(attempts, 30), LONGEST_PAUSE_MS), []
        reason = str(error)[:MOST_FAILURE]
        logger.info("%s: %s waits %.1f s: %s", name, target, pause / 1000, reason)

        def write(tx: Tx) -> None:
            queries.failed(tx, name, target, reason, pause, uncertain=uncertain)
            for other in resting:
                queries.begin(tx, name, other)
                queries.rest(tx, name, other, pause)

        await self._under_lease(write)

    def _neighbours(self, address: Address) -> list[str]:
        """Return the other targets in the same chat: a pause applies to them too, even after a restart."""
        place = self._transport.place(address)
        others = [found for name in self._targets() if name != address.target and (found := self._address(name))]
        return [other.target for other in others if self._transport.place(other) == place]

    async def _under_lease(self, write: Callable[[Tx], None]) -> None:
        def checked(tx: Tx) -> bool:
            if not self._lease.is_held(tx):
                return False
            write(tx)
            return True

        if not await self._store.write(checked):
            raise LeaseLost("Another daemon sends for this account now.")
