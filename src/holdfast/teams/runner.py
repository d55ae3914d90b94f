"""The runner: claims asks by lease, runs them on the pool, and stores each answer before anybody is told."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import field, replace
from functools import partial
from typing import Any, TypeVar

from holdfast.agents import RunPart, Turn
from holdfast.agents.errors import AgentDied, AgentError
from holdfast.errors import Conflict, HoldfastError, StoreCorrupt, StoreError, StoreRemoved
from holdfast.files.errors import explain
from holdfast.identity.managed import Managed
from holdfast.ids import random_id
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Store, Tx
from holdfast.teams.config import TeamsConfig
from holdfast.teams.errors import AgentFailed, AgentLost, AgentStalled, BudgetSpent, TeamUnavailable
from holdfast.teams.model import (
    ATTEMPTS,
    Ask,
    AskState,
    AskStatus,
    Conversation,
    ConversationStatus,
    framed,
    is_temporary,
)
from holdfast.teams.pool import LOST, Pool, SettingsOff, Slot, always_off
from holdfast.teams.queries import conversations
from holdfast.teams.team import Team
from holdfast.text.quoting import in_quotes, named

T = TypeVar("T")

DAY_MS = 24 * 3_600_000
LOOK_SECONDS = 10.0
UNSERVED_SECONDS, UNSERVED_LOOK = 3.0, 1.0
"""How long an ask waits while no machine can run it before it is ended, and how often that is checked. An editor may
take teams.json away for a moment."""
UNSERVED_ELSEWHERE_SECONDS = 20.0
"""The same where other machines share the store: one that is free takes an ask within LOOK_SECONDS. One that is at
work has as long as an agent may stall."""
MOST_SAID = 1_000
"""Characters of what an agent said that an error quotes."""
SETTINGS_S = 2.0
"""How soon a changed interval in teams.json takes effect."""
NEARLY_FULL = 0.85
STORE_AGAIN_SECONDS, STORE_AGAIN_MOST = 0.5, 10.0
"""The shortest and the longest delay before an outcome that could not be stored is retried."""
INTERRUPT_AGAIN, INTERRUPT_SECONDS = 1.0, 15.0
"""How often a cancelled turn is interrupted, and for how long, before its agent is stopped."""
ANSWER_FIRST_SECONDS = 0.002
"""How long the next asks wait after an ask has ended, so that its caller is answered first."""
REPAIR = "Repair it, then ask again."

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Claimed:
    """An ask that only this runner may work on."""

    ask: Ask
    token: str
    conversation: Conversation
    notices: dict[str, tuple[str, str]]
    """Notices for the team with their senders, by id; marked as shown once this turn is answered."""
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when work on it must stop."""


class NotOurs(Exception):
    """The ask was cancelled, or another runner has it now: nothing is left to do or to store."""


class Runner:
    """Runs the asks of the teams whose project is on this machine."""

    def __init__(
        self,
        store: Store,
        name: str,
        agents: Mapping[str, RunPart],
        env: Mapping[str, str],
        *,
        settings_off: SettingsOff = always_off,
    ) -> None:
        self._store = store
        self.name = name
        self.pool = Pool(store, name, agents, env, settings_off)
        self.config = TeamsConfig()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._claims: dict[str, Claimed] = {}
        self._outcomes: dict[str, asyncio.Future[AskState | None]] = {}
        self._promised = 0
        self._borrowed: set[int] = set()
        """Conversations whose process maintenance uses."""
        self._unserved: dict[str, float] = {}
        """Since when each of these asks waits for a team that cannot be run here."""
        self._serving = False
        self._wake = asyncio.Event()

    def use(self, config: TeamsConfig) -> None:
        """Use this configuration from now on."""
        self.config = config
        self._wake.set()

    @property
    def teams(self) -> list[str]:
        """The teams that can be run on this machine."""
        return [name for name, team in self.config.teams.items() if self.pool.can_run(team)]

    @property
    def busy(self) -> bool:
        """Whether asks are being worked on, or processes are kept warm."""
        return bool(self._running or self.pool.slots)

    def wake(self) -> None:
        """Look for asks now."""
        self._wake.set()

    # -- loops --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Requeue what an earlier daemon here was running, or fail it if it was tried often enough."""
        await self._store.write(lambda tx: self._recover(tx, self.name))

    async def run(self) -> None:
        """Claim and run asks until cancelled."""
        self._serving = True
        while True:
            self._wake.clear()
            # Looked for first: while asks are claimed, one that is just being stored cannot be begun at once.
            if waiting := await self._store.read(conversations.unclaimed):
                for claimed in await self._claim():
                    self.begin(claimed)
            await self._end_unserved(waiting)
            await self.pool.trim(self.config.settings.max_processes)
            with contextlib.suppress(TimeoutError):
                # Not wait_for: before Python 3.12 it swallows a cancellation that coincides with the event.
                async with asyncio.timeout(UNSERVED_LOOK if self._unserved else LOOK_SECONDS):
                    await self._wake.wait()

    @property
    def is_alone(self) -> bool:
        """Whether no other machine shares the store."""
        return self._store.engine != "postgres"

    def why_not(self, name: str) -> str | None:
        """Return why a team cannot be run on this machine, and what to do; None if it can."""
        team = self.config.teams.get(name)
        if team is not None:
            return self.pool.why_not(team)
        whose = name if self.config.readable else None
        found = next((str(fault) for fault in self.config.errors if fault.team == whose), None)
        return "It is not in teams.json any more." if found is None else f"teams.json: {in_quotes(found, MOST_SAID)}"

    async def _end_unserved(self, waiting: Iterable[tuple[str, str]]) -> None:
        """End those waiting asks, each given with its team, that no machine can run, with the reason."""
        reasons = {team: why for team in {team for _, team in waiting} if (why := self.why_not(team)) is not None}
        now = time.monotonic()
        if not self.config.readable:
            reasons = {}  # a file that cannot be read says nothing about its teams
        unserved = {ask_id: team for ask_id, team in waiting if team in reasons}
        self._unserved = {ask_id: self._unserved.get(ask_id, now) for ask_id in unserved}
        if not unserved:
            return
        at_work = await self._store.read(lambda tx: conversations.others_at_work(tx, self.name))
        for ask_id, team in unserved.items():
            if now - self._unserved[ask_id] >= self._unserved_seconds(team, at_work):
                also = "" if self.is_alone else " No other machine took it."
                error = unavailable(team, reasons[team] + also)
                await self._store.write(
                    partial(conversations.fail_waiting, ask_id=ask_id, code=error.code, error=str(error))
                )

    def _unserved_seconds(self, name: str, at_work: Collection[str]) -> float:
        """Return how long an ask may wait for a team that cannot be run here; a busy machine gets to it later."""
        if self.is_alone:
            return UNSERVED_SECONDS
        team = self.config.teams.get(name)
        machines = at_work if team is None or team.machine is None else {team.machine} & set(at_work)
        return self.stall_seconds if machines else UNSERVED_ELSEWHERE_SECONDS

    @property
    def stall_seconds(self) -> float:
        """How long an agent may give no sign of life."""
        return self.config.settings.stall_timeout_ms / 1000

    @property
    def room(self) -> int:
        """How many more asks may be run; one whose agent waits for its own ask does not count."""
        at_work = len(self._running) + len(self._borrowed) - self.pool.parked
        return max(0, self.config.settings.max_processes - at_work)

    @contextmanager
    def parked(self, managed: Managed | None) -> Iterator[None]:
        """Free the slot of an agent that waits for its own ask, and do not count its silence as a stall."""
        slot = None if managed is None else self.pool.slot(managed.conversation)
        if slot is None:
            yield
            return
        slot.asks += 1
        self._wake.set()
        try:
            yield
        finally:
            slot.asks -= 1
            slot.alive_at = time.monotonic()
            self._wake.set()  # the answering agent's process may exceed the limit now

    def look_ahead(self, from_team: str, to_team: str, thread: str) -> None:
        """Begin to look whether a warm process can take the turn of an ask that is about to be stored."""
        if (team := self.config.teams.get(to_team)) is not None:
            self.pool.look_ahead(team, (from_team, to_team, thread))

    @contextmanager
    def place_for(self, to_team: str) -> Iterator[bool]:
        """Yield whether an ask to this team may be claimed as it is stored; its slot is reserved until it has begun."""
        team = self.config.teams.get(to_team)
        free = team is not None and self._serving and self.room > self._promised and self.pool.can_run(team)
        self._promised += free
        try:
            yield free
        finally:
            self._promised -= free

    def claim(self, tx: Tx, ask: Ask) -> Claimed | None:
        """Claim an ask in the transaction that stores it, if it is the next to be run."""
        return self._take(tx, [ask.to_team], list(self._claims.values()), only=ask.id)

    def begin(self, claimed: Claimed) -> None:
        """Work on a claimed ask."""
        loop = asyncio.get_running_loop()
        self._outcomes[claimed.ask.id] = loop.create_future()
        self._running[claimed.ask.id] = loop.create_task(self._work(claimed))
        self._claims[claimed.ask.id] = claimed

    def works_on(self, ask_id: str) -> bool:
        """Return whether this runner is working on an ask."""
        return ask_id in self._outcomes

    async def outcome(self, ask_id: str, seconds: float) -> AskState | None:
        """Return how an ask of this runner ended, as stored; None if it has not, or is not known here."""
        future = self._outcomes.get(ask_id)
        if future is None:
            return None
        await asyncio.wait([future], timeout=max(0.0, seconds))
        return future.result() if future.done() else None

    async def renew(self) -> None:
        """Renew the leases of running asks and of the processes there are, and requeue the asks of dead runners."""
        running, slots = list(self._running), self.pool.slots
        held = {slot.conversation_id for slot in slots} | self._borrowed
        held |= {one.conversation.id for one in self._claims.values()}
        lost, gone = await self._store.write(lambda tx: conversations.renew(tx, self.name, running, held))
        self.cancel(lost)
        for slot in slots:
            if slot.conversation_id in gone and not slot.busy:
                await self.pool.discard(slot)  # another machine continues it
        if await self._store.write(lambda tx: self._recover(tx, None)):
            self._wake.set()

    async def watch_processes(self) -> None:
        """Check the processes as often as the settings say, which may change meanwhile."""
        looked_at: float | None = None
        while True:
            settings = self.config.settings
            every = min(settings.health_check_interval_ms, settings.idle_timeout_ms) / 1000
            if looked_at is None or time.monotonic() - looked_at >= every:
                await self.look_after()
                looked_at = time.monotonic()
            await asyncio.sleep(min(every, SETTINGS_S))

    async def look_after(self) -> None:
        """End idle processes and those of removed teams, and forget those that died."""
        for slot in self.pool.slots:
            if slot.team not in self.config.teams and not slot.busy:
                await self.pool.discard(slot)
        await self.pool.close_idle(self.config.settings.idle_timeout_ms / 1000)

    async def stop(self) -> None:
        """Stop working; asks under way wait for the next daemon."""
        self._serving = False
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        await self.pool.close()

    async def release(self, teams: Collection[str], session_ids: Collection[str]) -> None:
        """End the idle processes of these teams' agents, and delete what agents keep of these conversations."""
        for slot in [slot for slot in self.pool.slots if slot.team in teams and not slot.busy]:
            await self.pool.discard(slot)
        await asyncio.to_thread(self.pool.forget, session_ids)

    def cancel(self, ask_ids: Iterable[str]) -> None:
        """Stop working on asks that were cancelled."""
        for ask_id in ask_ids:
            if (claimed := self._claims.get(ask_id)) is not None:
                claimed.cancelled.set()

    def parent(self, tx: Tx, managed: Managed | None) -> Ask | None:
        """Return the ask on whose behalf a managed agent asks; raises Conflict once that was cancelled."""
        if managed is None:
            return None
        found = conversations.parent_in(tx, managed.conversation)
        if found is None and any(one.conversation.id == managed.conversation for one in self._claims.values()):
            raise Conflict("What you are working on was cancelled, so nothing is asked for it.")
        return found

    def doing(self, ask: Ask) -> str | None:
        """Return what the agent of an ask does, in words, if it is run here."""
        slot = self.pool.slot(ask.conversation_id) if ask.id in self._claims else None
        return slot.doing if slot is not None else None

    def seen(self, state: AskState) -> AskState:
        """Return an ask with what this machine knows of it: why it cannot be run here, or what its agent does."""
        if state.done:
            return state
        waits = state.ask.status == AskStatus.WAITING.value
        why_not = self.why_not(state.ask.to_team) if waits else None
        return replace(state, why_not=why_not, doing=self.doing(state.ask))

    # -- one ask ------------------------------------------------------------------------------------------------------

    async def _claim(self) -> list[Claimed]:
        """Claim as many asks as there is room for, each of a different conversation."""
        room = max(0, self.room - self._promised)
        teams = self.teams
        if not room or not teams:
            return []
        running = list(self._claims.values())
        self._promised += room

        def write(tx: Tx) -> list[Claimed]:
            claimed: list[Claimed] = []
            while len(claimed) < room:
                taken = self._take(tx, teams, [*running, *claimed])
                if taken is None:
                    break
                claimed.append(taken)
            return claimed

        try:
            return await self._store.write(write)
        finally:
            self._promised -= room

    def _take(self, tx: Tx, teams: list[str], running: list[Claimed], only: str | None = None) -> Claimed | None:
        tx.lock(conversations.CLAIMS)
        found = conversations.next_waiting(tx, self.name, teams, [one.conversation.id for one in running])
        conversation = conversations.conversation(tx, found.conversation_id) if found else None
        if found is None or conversation is None or only not in (None, found.id):
            return None
        token = random_id()
        if not conversations.claim(tx, found, self.name, token):
            return None
        notices = conversations.unseen_notices(tx, found.to_team)
        for one in running:  # a turn under way shows them already
            notices = {key: notice for key, notice in notices.items() if key not in one.notices}
        return Claimed(found, token, conversation, notices)

    async def _work(self, claimed: Claimed) -> None:
        ask, token, conversation = claimed.ask, claimed.token, claimed.conversation
        keep = not is_temporary(conversation.thread)
        slot: Slot | None = None
        try:
            if (why := self.why_not(ask.to_team)) is not None:  # changed since it was claimed
                raise unavailable(ask.to_team, why)
            team = self.config.teams[ask.to_team]
            await self._check_budget(team)
            warm = self.pool.slot(conversation.id) is not None
            slot, note = await self._opened(team, conversation, claimed.cancelled)
            # Opening takes seconds, in which another daemon may have cancelled it.
            if not warm and not await self._store.read(lambda tx: conversations.is_claimed(tx, ask.id, token)):
                raise NotOurs
            turn = await self.turn(slot, _text(claimed, note), claimed.cancelled, stores=False)
            if turn.is_error:
                await self._stored_with_lines(turn, lambda tx: _add_usage(tx, ask, turn))
                said = turn.text or turn.subtype
                raise AgentFailed(f"The agent reported an error{f': {in_quotes(said, MOST_SAID)}' if said else ''}.")
            await self._answered(claimed, turn, note, temporary=not keep)
        except NotOurs:
            pass
        except AgentDied as error:
            await self._stored(partial(_again, ask=ask, runner=self.name, why=str(error)))
        except asyncio.CancelledError:
            stopped = "Holdfast was stopped; the ask waits again."
            with contextlib.suppress(StoreError):  # its lease runs out then
                await self._store.write(lambda tx: conversations.requeue(tx, ask, self.name, stopped))
            raise
        except HoldfastError as error:
            keep = keep and isinstance(error, AgentFailed | BudgetSpent)
            await self._failed(ask, token, error.code, str(error))
        except TimeoutError:  # an OSError to Python, but not one of a file
            keep = False
            stalled = AgentStalled("The agent did not get ready in time and was stopped. Ask again later.")
            await self._failed(ask, token, stalled.code, str(stalled))
        except OSError as error:
            keep = False
            trouble = explain(error)
            await self._failed(ask, token, trouble.code, str(trouble) if trouble.recovery else f"{trouble} {REPAIR}")
        except Exception as error:
            keep = False
            logger.exception("an ask of team %s failed unexpectedly", ask.to_team)
            why = f"{type(error).__name__}: {in_quotes(str(error), MOST_SAID)}"
            text = f"Holdfast failed to run it ({why}). Ask again; daemon.log says more."
            await self._failed(ask, token, "E_INTERNAL", text)
        finally:
            self._tell(ask, None)
            self._claims.pop(ask.id, None)
            try:
                await self._put_back(conversation, slot, keep=keep)
            finally:
                self._running.pop(ask.id, None)  # last: whoever stops the runner waits for all of this
                asyncio.get_running_loop().call_later(ANSWER_FIRST_SECONDS, self._wake.set)

    async def _put_back(self, conversation: Conversation, slot: Slot | None, *, keep: bool) -> None:
        """Keep a process warm or end it; a conversation without one is released."""
        if slot is None:
            if self.pool.slot(conversation.id) is None:
                await self.pool.let_go(conversation.id)
        elif keep and slot.session.alive:
            self.pool.give_back(slot)
        else:
            await self.pool.discard(slot)

    async def open(self, team: Team, conversation: Conversation) -> tuple[Slot, str | None]:
        """The conversation's process, within the limit of processes; see `Pool.open`."""
        return await self.pool.open(team, conversation, self.config.settings.max_processes)

    async def _opened(
        self, team: Team, conversation: Conversation, cancelled: asyncio.Event
    ) -> tuple[Slot, str | None]:
        """Open the conversation's process, unless the ask is cancelled meanwhile or the agent does not get ready."""
        opening = asyncio.get_running_loop().create_task(self.open(team, conversation))
        try:
            await _first(opening, cancelled, self.stall_seconds)
            if cancelled.is_set():
                raise NotOurs
            if not opening.done():
                raise AgentStalled(f"The agent did not get ready within {self.stall_seconds:.0f} s and was stopped.")
        except BaseException:
            opening.cancel()
            (opened,) = await asyncio.gather(opening, return_exceptions=True)
            if not isinstance(opened, BaseException):  # just then it was there
                self.pool.give_back(opened[0])
            raise
        return opening.result()

    @asynccontextmanager
    async def borrowed(self, conversation: Conversation) -> AsyncIterator[Slot]:
        """Use the process of a conversation that nobody works on; raises Conflict if another machine has it."""
        slot, keep = None, False
        self._borrowed.add(conversation.id)
        try:
            if not await self._store.write(lambda tx: conversations.hold(tx, conversation.id, self.name)):
                raise Conflict("Another machine has the conversation.", recovery="Try again when it is idle there.")
            team = self.config.teams[conversation.to_team]
            slot, _ = await self._opened(team, conversation, asyncio.Event())
            yield slot
            keep = True
        finally:
            self._borrowed.discard(conversation.id)
            await self._put_back(conversation, slot, keep=keep)
            self._wake.set()

    async def turn(self, slot: Slot, text: str, cancelled: asyncio.Event | None = None, *, stores: bool = True) -> Turn:
        """Run one turn; give up when the agent shows no sign of life for too long, or does not take an interrupt."""
        over = cancelled or asyncio.Event()
        slot.alive_at, slot.doing, slot.retrying = time.monotonic(), None, False
        turn = asyncio.get_running_loop().create_task(slot.session.send(text, slot.take, stores=stores))
        interrupted: float | None = None
        try:
            while not turn.done():
                now, limit = time.monotonic(), self.stall_seconds
                if slot.waits:
                    slot.alive_at = now
                if over.is_set():
                    interrupted = interrupted or now
                    if now - interrupted >= INTERRUPT_SECONDS:
                        raise AgentStalled("The agent did not take the interrupt and was stopped.")
                    await self._interrupt(slot)
                    await asyncio.wait([turn], timeout=INTERRUPT_AGAIN)
                elif now - slot.alive_at >= limit:
                    doing = f"was {slot.doing}," if slot.retrying else "gave no sign of life"
                    raise AgentStalled(f"The agent {doing} for {limit:.0f} s and was stopped. Ask again later.")
                else:
                    await _first(turn, over, min(max(0.05, slot.alive_at + limit - now), SETTINGS_S))
            return turn.result()
        finally:
            if not turn.done():
                turn.cancel()
                await asyncio.gather(turn, return_exceptions=True)

    async def _interrupt(self, slot: Slot) -> None:
        """Interrupt a turn; one that has not begun yet has nothing to interrupt, so the caller repeats it."""
        try:
            async with asyncio.timeout(INTERRUPT_AGAIN):
                await slot.session.interrupt()
        except (AgentError, TimeoutError) as error:
            logger.warning("interrupting a turn of team %s failed and is tried again: %s", slot.team, error)

    async def _check_budget(self, team: Team) -> None:
        if team.max_cost_usd_per_day is None:
            return
        spent = await self._store.read(lambda tx: conversations.spent_since(tx, team.name, tx.now() - DAY_MS))
        if spent >= team.max_cost_usd_per_day * 1_000_000:
            raise BudgetSpent(
                f"Team {team.name} has spent its {team.max_cost_usd_per_day} dollars of the last 24 hours.",
                recovery="Raise maxCostUsdPerDay in teams.json, or wait.",
            )

    # -- outcomes -----------------------------------------------------------------------------------------------------

    async def _answered(self, claimed: Claimed, turn: Turn, note: str | None, *, temporary: bool) -> None:
        ask = claimed.ask
        full = bool(
            turn.context_tokens and turn.context_window and turn.context_tokens > NEARLY_FULL * turn.context_window
        )

        def write(tx: Tx) -> AskState | None:
            _add_usage(tx, ask, turn)
            notes = " ".join(filter(None, (ask.note, note))) or None
            if conversations.finish(tx, ask, claimed.token, AskStatus.ANSWERED, answer=turn.text, note=notes):
                conversations.mark_shown(tx, claimed.notices)
                conversations.used(tx, ask.conversation_id, 2)
                if full:
                    conversations.set_status(tx, ask.conversation_id, ConversationStatus.COMPACT_PENDING)
                if temporary:
                    conversations.set_status(tx, ask.conversation_id, ConversationStatus.ARCHIVED)
            return conversations.ask_state(tx, ask.id)

        self._tell(ask, await self._stored_with_lines(turn, write))

    def _tell(self, ask: Ask, seen: AskState | None) -> None:
        """Tell waiting callers how the ask ended, without reading the store again."""
        future = self._outcomes.pop(ask.id, None)
        if future is not None and not future.done():
            future.set_result(seen)

    async def _failed(self, ask: Ask, token: str, code: str, message: str) -> None:
        await self._stored(
            lambda tx: conversations.finish(tx, ask, token, AskStatus.FAILED, error_code=code, error=message)
        )

    async def _stored_with_lines(self, turn: Turn, write: Callable[[Tx], T]) -> T:
        """Store what a turn came to in one transaction with what its agent wrote, as far as that is not stored yet."""
        lines = turn.unstored
        if lines is not None:

            def both(tx: Tx) -> T:
                lines.store(tx)
                return write(tx)

            try:
                return await self._store.write(both)
            except (StoreCorrupt, StoreRemoved):
                raise
            except StoreError:
                await lines.store_alone()  # an ask whose turn cannot be kept fails
        return await self._stored(write)

    async def _stored(self, write: Callable[[Tx], T]) -> T:
        """Store how an ask ended; while the store cannot write, as on a full disk, retry."""
        pause = STORE_AGAIN_SECONDS
        while True:
            try:
                return await self._store.write(write)
            except (StoreCorrupt, StoreRemoved):
                raise  # the daemon starts again, and the ask with it
            except StoreError:
                logger.exception("the outcome of an ask could not be stored; again in %.1f s", pause)
            await asyncio.sleep(pause)
            pause = min(pause * 2, STORE_AGAIN_MOST)

    def _recover(self, tx: Tx, own: str | None) -> int:
        lost = conversations.abandoned(tx, own)
        for ask in lost:
            conversations.let_go(tx, ask.conversation_id, ask.lease_by or "")
            _again(tx, ask, ask.lease_by or "", "The daemon that ran it ended.")
        return len(lost)


def unavailable(team: str, why: str) -> TeamUnavailable:
    """Return the error of an ask to a team that cannot be run."""
    return TeamUnavailable(f"Team {named(team)} cannot be run. {why}")


def _text(claimed: Claimed, note: str | None) -> str:
    """Return what the agent is told: a conversation knows only itself, and its past is in its transcript."""
    conversation = claimed.conversation
    summary = None if conversation.begun else conversation.summary
    return framed(
        conversation.from_team,
        conversation.thread,
        claimed.ask.text,
        list(claimed.notices.values()),
        summary,
        lost=note == LOST,
    )


def _add_usage(tx: Tx, ask: Ask, turn: Turn) -> None:
    conversations.add_usage(
        tx,
        ask.id,
        duration_ms=turn.duration_ms,
        cost_microusd=None if turn.cost_usd is None else round(turn.cost_usd * 1_000_000),
        input_tokens=turn.input_tokens,
        output_tokens=turn.output_tokens,
    )


def _again(tx: Tx, ask: Ask, runner: str, why: str) -> None:
    """Requeue an ask that its runner did not answer, or fail it if it was tried often enough."""
    current = conversations.ask(tx, ask.id)
    if current is None or current.status != AskStatus.RUNNING.value or current.lease_by != runner:
        return
    if current.attempts < ATTEMPTS:
        conversations.requeue(tx, ask, runner, f"{why} It was asked again.")
    else:
        conversations.finish(
            tx, ask, None, AskStatus.FAILED, error_code=AgentLost.code, error=f"{why} It had been asked twice."
        )


async def _first(task: asyncio.Task[Any], event: asyncio.Event, seconds: float) -> None:
    """Wait until a task is done, an event is set, or the time is up."""
    waiting = asyncio.get_running_loop().create_task(event.wait())
    try:
        await asyncio.wait([task, waiting], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
