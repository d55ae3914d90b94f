"""Managed delivery: a message that no live agent takes is answered by a turn of the team's own agent.

If an agent is idle at its terminal, a copy of its conversation runs the turn, provided that its owner agrees.

The state of a message is only in the store: its lease, and its ask under a key made from its queue position. The daemon
after one that was killed finds both and continues, so that a message is asked once and finished once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from os.path import exists
from pathlib import Path

from holdfast.bridge.copy_changes import changes
from holdfast.bridge.idle import ask as ask_owner
from holdfast.bridge.model import MAX_TEXT, Idle, IdleDecision, Message, Outcome, Priority
from holdfast.bridge.queries import idle, incarnations, queue
from holdfast.bridge.queries.idle import COPY
from holdfast.bridge.service import Bridge
from holdfast.bridge.wording import COPYING, beginning, delivered, resumption
from holdfast.errors import Busy, HoldfastError, NotFound, StoreError
from holdfast.identity.caller import Caller, Era, Transport
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Store, Tx, calls, leases
from holdfast.store.calls import CallKey
from holdfast.store.wakeups import Wakeups
from holdfast.teams.model import COPY as COPY_THREAD
from holdfast.teams.model import Ask, AskState, AskStatus
from holdfast.teams.service import Teams
from holdfast.teams.team import Delivery, Team
from holdfast.text.quoting import signed

THREAD = "bridge"
"""The conversation in which a target's agent gets its messages."""
WAY = "run"
LEASE_MS = 120_000
"""The lease after which another machine may continue a dead one's message."""
LOOK_S = 2.0
GATHER_S = 0.05
"""How long to collect changes, so that a busy store is not read after every commit."""
AGAIN_S = 0.25
STOPPED = "Stopped before it was done."
CALLER = Caller(Transport.RELAY, Era.MODERN, None, client_name="bridge")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TakenMessage:
    """A message leased to this daemon."""

    message: Message
    since: int
    """The number of the last message that had been sent when this one was taken."""


class ManagedDelivery:
    """Delivers messages to agents that Holdfast runs itself, one at a time and in order."""

    def __init__(
        self,
        store: Store,
        bridge: Bridge,
        teams: Teams,
        name: str,
        *,
        can_run: Callable[[Team], bool],
        alive: Callable[[str], bool],
        idle: Callable[[str], Awaitable[str | None]],
    ) -> None:
        self._store = store
        self._bridge = bridge
        self._teams = teams
        self._me = f"daemon:{name}"
        self._can_run = can_run
        self._alive = alive
        self._idle = idle
        self._serving: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        try:
            with Wakeups(self._store) as news:
                while True:
                    news.clear()
                    await self._look()
                    await news.wait(LOOK_S)
                    await asyncio.sleep(GATHER_S)
        finally:
            for task in self._serving.values():
                task.cancel()
            await asyncio.gather(*self._serving.values(), return_exceptions=True)
            self._serving.clear()

    async def _look(self) -> None:
        for target in [target for target, task in self._serving.items() if task.done()]:
            self._serving.pop(target).result()  # a failure fails the loop, so that it is counted and shown
        managed = {name for name, team in self._teams.config.teams.items() if team.delivery is not Delivery.HOOK}
        if not managed - self._serving.keys():
            return
        due = await self._store.read(lambda tx: queue.due(tx, self._me))
        for target in sorted((due.mine | due.waiting) & managed - self._serving.keys()):
            if target in due.mine or await self._way(target) is not None:
                self._serving[target] = asyncio.create_task(self._serve(target))

    async def _way(self, target: str) -> str | None:
        """Return how a turn may start here, if it may: Holdfast runs no model for an agent that is already at work.

        The owner is asked about one that is idle at its terminal."""
        team = self._teams.config.teams.get(target)
        if team is None or team.delivery is Delivery.HOOK or not self._can_run(team):
            return None
        if team.delivery is Delivery.RUN or not self._alive(target):
            return WAY
        session_id = await self._idle(target)
        if session_id is None:
            return None
        known = await self._store.read(lambda tx: idle.state(tx, target))
        if known is None or known.decision == IdleDecision.OVER:
            seconds, in_chat = team.idle_seconds, team.chat is not None
            await self._store.write(lambda tx: ask_owner(tx, target, session_id, seconds, in_chat=in_chat))
        return COPY if _forks(known) else None

    async def _serve(self, target: str) -> None:
        """Process one message after another until none is left for this daemon."""
        while True:
            work = await self._store.write(partial(self._next, target=target, way=await self._way(target)))
            if work is None:
                return
            await self._carry_out(work)

    def _next(self, tx: Tx, target: str, *, way: str | None) -> TakenMessage | None:
        """Return the message under way, or else the next one; a STOP with nothing under way is done at once."""
        tx.lock(f"bridge:{target}")
        mine = queue.leased(tx, target, self._me)
        if mine:
            return TakenMessage(mine[0], queue.last_seq(tx, target))
        if way is None or queue.front(tx, target).out or (way == COPY and not _forks(idle.state(tx, target))):
            return None
        while (taken := queue.take(tx, target, self._me, way, LEASE_MS)) is not None:
            if taken.priority != Priority.STOP:
                return TakenMessage(taken, queue.last_seq(tx, target))
            queue.finish(tx, taken, Outcome.DONE, "Nothing was under way.")
        return None

    async def _carry_out(self, work: TakenMessage) -> None:
        """Process one message; an error fails that message and holds up no other."""
        try:
            ask_id = await (self._ask_copy(work.message) if work.message.way == COPY else self._ask(work.message))
            if ask_id is not None:
                await self._attend(work, ask_id)
        except (StoreError, Busy):
            raise
        except HoldfastError as error:
            logger.warning("message %s could not be carried out: %s", work.message.id, error)
            why = str(error)
            await self._store.write(lambda tx: self._end(tx, work.message, Outcome.FAILED, why))

    async def _attend(self, work: TakenMessage, ask_id: str) -> None:
        """Wait until the ask is answered, a STOP comes, or the message is no longer this daemon's."""
        with Wakeups(self._store) as news:
            while True:
                news.clear()
                state = await self._teams.look(ask_id)
                if await self._store.read(lambda tx: queue.is_stopped(tx, work.message.target, work.since)):
                    return await self._halt(work.message, state.ask)
                if state.done:
                    return await self._finish(work.message, state)
                if not await self._keep(work.message):
                    return None
                await news.wait(LOOK_S)
                await asyncio.sleep(GATHER_S)

    async def _ask(self, message: Message) -> str:
        """Ask the team, or find the ask that was made before."""
        waiting = await self._store.read(lambda tx: queue.waiting(tx, message.target))
        parts = (await self._left_behind(message.target), delivered(message, waiting=waiting, managed=True))
        text = signed("\n".join(filter(None, parts)))
        return await self._teams.ask(CALLER, message.target, text, thread=THREAD, key=_key(message))

    async def _ask_copy(self, message: Message) -> str | None:
        """Ask a copy of the conversation at the terminal, or find the ask; None if that conversation is gone."""
        known = await self._store.read(lambda tx: idle.state(tx, message.target))
        if known is None:
            await self._store.write(lambda tx: self._end(tx, message, Outcome.LATER, None))
            return None
        text = signed(f"{COPYING}\n{delivered(message, managed=True)}")
        thread, key = f"{COPY_THREAD}{known.question}", _key(message)
        # Before its first prompt a conversation has no transcript: there is nothing to copy, and so nothing is missing.
        present = await self._store.read(lambda tx: incarnations.present(tx, message.target))
        has_begun = present is None or not present.transcript or await asyncio.to_thread(exists, present.transcript)
        origin = known.session_id if has_begun else None
        return await self._teams.ask(CALLER, message.target, text, thread=thread, copy_of=origin, key=key)

    async def _left_behind(self, target: str) -> str | None:
        """Describe the agent's task if its conversation was restarted since."""
        if not self._is_alone(target):
            return None
        try:
            conversation = (await self._teams.history(None, target, THREAD, 1)).conversation
        except NotFound:
            return None
        restart, task = await self._bridge.seen(target, conversation.session_id, WAY)
        return f"[{resumption(task, restart.old, task.decision)}]\n" if restart and task else None

    def _is_alone(self, target: str) -> bool:
        """Return whether no other agent works for a target: two that alternate are no restart."""
        team = self._teams.config.teams.get(target)
        return team is not None and team.delivery is Delivery.RUN

    async def _finish(self, message: Message, state: AskState) -> None:
        """Store the answer as the reply, which the target's followers see."""
        alone = self._is_alone(message.target)
        outcome, reply = _outcome(state.ask)
        if message.way == COPY and (done := await self._changes(message.target, state)) is not None:
            reply = "\n\n".join(filter(None, (reply, done)))

        def write(tx: Tx) -> bool:
            if not self._end(tx, message, outcome, reply):
                return False
            if alone and state.conversation is not None:
                incarnations.seen(tx, message.target, state.conversation.session_id, WAY)
            return True

        if not await self._store.write(write):
            logger.warning("message %s was no longer this daemon's when its answer came", message.id)

    async def _changes(self, target: str, state: AskState) -> str | None:
        """Describe which files a copy changed and which commands it ran; None if neither."""
        known = await self._store.read(lambda tx: incarnations.present(tx, target))
        team, ask = self._teams.config.teams.get(target), state.ask
        if known is None or not known.transcript or team is None or state.conversation is None or not ask.started_at:
            return None
        copy = state.conversation.session_id
        return await asyncio.to_thread(changes, Path(known.transcript), team.project, copy, ask.started_at)

    async def _halt(self, message: Message, ask: Ask) -> None:
        """End the turn of a STOP first, so that the reply to it is true."""
        await self._teams.cancel(ask.id)
        while self._teams.works_on(ask.id) and await self._keep(message):
            await self._teams.outcome(ask.id, AGAIN_S)
        ended = (await self._teams.look(ask.id)).ask
        how = "Stopped" if ended.status == AskStatus.CANCELLED else "Had just ended"

        def write(tx: Tx) -> None:
            if not self._end(tx, message, *_outcome(ended)):
                return
            while stop := queue.take(tx, message.target, self._me, WAY, LEASE_MS, least=Priority.STOP):
                queue.finish(tx, stop, Outcome.DONE, f"{how}: {beginning(message.text)}")

        await self._store.write(write)

    async def _keep(self, message: Message) -> bool:
        """Renew the lease in time; False if the message is no longer this daemon's."""

        def look(tx: Tx) -> tuple[bool, bool]:
            current = self._current(tx, message)
            return current is not None, current is not None and leases.due(current.lease_until, tx.now(), LEASE_MS)

        mine, due = await self._store.read(look)
        return await self._store.write(lambda tx: self._renew(tx, message)) if due else mine

    def _renew(self, tx: Tx, message: Message) -> bool:
        tx.lock(f"bridge:{message.target}")
        if self._current(tx, message) is None:
            return False
        leases.renew(tx, queue.MESSAGES, LEASE_MS, key=message.row_id)
        # Stored calls are kept for a day; a turn may take longer.
        calls.keep(tx, _key(message))
        return True

    def _end(self, tx: Tx, message: Message, outcome: Outcome, reply: str | None) -> bool:
        tx.lock(f"bridge:{message.target}")
        current = self._current(tx, message)
        if current is not None:
            queue.finish(tx, current, outcome, reply)
        return current is not None

    def _current(self, tx: Tx, message: Message) -> Message | None:
        """Return the message as it is now, if it is still this daemon's."""
        mine = queue.leased(tx, message.target, self._me)
        return next((one for one in mine if one.row_id == message.row_id), None)


def _forks(known: Idle | None) -> bool:
    return known is not None and known.decision == IdleDecision.FORK


def _key(message: Message) -> CallKey:
    """Return the key of a message's ask; a retried message has another queue position and gets another ask."""
    return CallKey.of("bridge", f"{message.target}:{message.seq}", WAY, {})


def _outcome(ask: Ask) -> tuple[Outcome, str | None]:
    if ask.status == AskStatus.CANCELLED:
        return Outcome.FAILED, STOPPED
    if ask.status == AskStatus.FAILED:
        return Outcome.FAILED, ask.error or ask.error_code
    answer = ask.answer or ""
    if len(answer) > MAX_TEXT:
        whole = f'teams_session {{operation: "result", askId: "{ask.id}"}}'
        answer = f"{answer[:MAX_TEXT]}… [cut; {whole} has all of it]"
    return Outcome.DONE, "\n\n".join(filter(None, (answer, ask.note and f"[{ask.note}]"))) or None
