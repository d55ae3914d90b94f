"""The pool: one agent process per conversation, never more than allowed, idle ones making room."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from holdfast.agents import AgentSession
from holdfast.teams.model import Conversation, to_evict

logger = logging.getLogger(__name__)

Open = Callable[[], Awaitable[AgentSession]]


@dataclass(slots=True, eq=False)
class Slot:
    """One conversation's process."""

    conversation_id: int
    team: str
    session: AgentSession
    busy: bool = True
    parked: bool = False
    """Its agent waits for an ask of its own, so it takes no place."""
    used_at: float = field(default_factory=time.monotonic)


class Pool:
    """Agent processes of this daemon."""

    def __init__(self, closed: Callable[[int], Awaitable[None]]) -> None:
        self._slots: dict[int, Slot] = {}
        self._opening = 0
        self._turns: dict[int, asyncio.Lock] = {}
        self._closed = closed
        self._changing = asyncio.Lock()

    @property
    def slots(self) -> list[Slot]:
        """Every process there is."""
        return list(self._slots.values())

    @property
    def parked(self) -> int:
        """How many processes wait for an ask of their own."""
        return sum(slot.parked for slot in self._slots.values())

    def park(self, conversation_id: int, parked: bool) -> None:
        """The conversation's agent waits for somebody else, or goes on."""
        slot = self._slots.get(conversation_id)
        if slot is not None:
            slot.parked = parked

    async def take(self, conversation: Conversation, limit: int, open_session: Open) -> Slot:
        """The conversation's process, warm or newly opened; idle ones of others make room.

        Whoever has it has it alone, until it is given back or discarded.
        """
        turn = self._turns.setdefault(conversation.id, asyncio.Lock())
        await turn.acquire()
        try:
            slot = await self._warm_or_opened(conversation, limit, open_session)
        except BaseException:
            turn.release()
            raise
        slot.busy, slot.used_at = True, time.monotonic()
        return slot

    async def _warm_or_opened(self, conversation: Conversation, limit: int, open_session: Open) -> Slot:
        async with self._changing:
            slot = self._slots.get(conversation.id)
            if slot is not None and slot.session.alive:
                slot.busy = True
                return slot
            if slot is not None:
                await self._drop(slot)
            while len(self._slots) + self._opening - self.parked >= limit:
                idle = [(slot.conversation_id, slot.used_at) for slot in self._slots.values() if not slot.busy]
                evicted = to_evict(idle)
                if evicted is None:
                    break
                await self._drop(self._slots[evicted])
            self._opening += 1
        try:
            session = await open_session()
        finally:
            self._opening -= 1
        slot = self._slots[conversation.id] = Slot(conversation.id, conversation.to_team, session)
        return slot

    def give_back(self, slot: Slot) -> None:
        """The work is done; the process stays warm."""
        slot.used_at = time.monotonic()
        self._release(slot)

    async def discard(self, slot: Slot) -> None:
        """The process is of no use any more."""
        try:
            async with self._changing:
                await self._drop(slot)
        finally:
            self._release(slot)

    def _release(self, slot: Slot) -> None:
        if slot.busy:
            slot.busy = slot.parked = False
            self._turns[slot.conversation_id].release()

    async def close_idle(self, idle_seconds: float) -> None:
        """End processes that had nothing to do for a while, and forget those that died."""
        now = time.monotonic()
        for slot in self.slots:
            if not slot.busy and (not slot.session.alive or now - slot.used_at > idle_seconds):
                async with self._changing:
                    if not slot.busy:
                        await self._drop(slot)

    async def close(self) -> None:
        """End every process."""
        await asyncio.gather(*(self._drop(slot) for slot in self.slots))

    async def _drop(self, slot: Slot) -> None:
        if self._slots.get(slot.conversation_id) is slot:
            del self._slots[slot.conversation_id]
        await slot.session.close()
        await self._closed(slot.conversation_id)
