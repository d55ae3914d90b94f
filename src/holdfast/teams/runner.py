"""The runner: claims asks by lease, runs them on the pool, and stores each answer before anybody is told."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.errors import HoldfastError, StoreError
from holdfast.processes import is_running
from holdfast.store import Store, Tx
from holdfast.teams import queries
from holdfast.teams.agents import Agent, AgentEvent, AgentSession, AgentSpec, Compaction, FoundSession, Turn
from holdfast.teams.agents.errors import AgentDied, AgentNotReady, CompactionFailed, SessionInUse, SessionMissing
from holdfast.teams.errors import AgentFailed, AgentLost, AgentStalled, BudgetSpent, SessionCreationError
from holdfast.teams.model import (
    ATTEMPTS,
    TEMPORARY,
    Ask,
    AskStatus,
    Conversation,
    ConversationStatus,
    framed,
    read_frame,
)
from holdfast.teams.permissions import Permissions
from holdfast.teams.pool import Pool, Slot
from holdfast.teams.roster import Roster
from holdfast.teams.seen import Seen, look
from holdfast.teams.team import Team

DAY_MS = 24 * 3_600_000
GONE_SECONDS = 5.0
LOOK_SECONDS = 10.0
NEARLY_FULL = 0.85
SUMMARISE = (
    "Summarise this conversation for whoever continues it: what was asked, what was answered and decided, what is open."
    " Answer with the summary alone."
)
LOST = "The earlier conversation could not be found any more; this is a fresh one."

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Claimed:
    """An ask that this runner alone may work on."""

    ask: Ask
    token: str
    conversation: Conversation
    notices: list[tuple[str, str]]
    """What others left for the team, by sender; shown with this turn."""


class Runner:
    """Runs the asks of the teams whose project is on this machine."""

    def __init__(self, store: Store, name: str, agents: Mapping[str, Agent], env: Mapping[str, str]) -> None:
        self._store = store
        self._name = name
        self._agents = agents
        self._env = env
        self._roster = Roster()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._conversations: dict[str, int] = {}
        self._outcomes: dict[str, asyncio.Future[Seen | None]] = {}
        self._promised = 0
        self._serving = False
        self._wake = asyncio.Event()
        self.pool = Pool(self._let_go)
        self.permissions = Permissions(store)

    def use(self, roster: Roster) -> None:
        """Go on with these teams."""
        self._roster = roster
        self._wake.set()

    @property
    def busy(self) -> bool:
        """Whether asks are being worked on, or processes are kept warm."""
        return bool(self._running or self.pool.slots)

    def wake(self) -> None:
        """There may be something to do."""
        self._wake.set()

    # -- loops --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """What an earlier life of this daemon was running waits again, or fails when it was tried often enough."""
        await self._store.write(lambda tx: self._recover(tx, self._name))

    async def run(self) -> None:
        """Claim and run asks, for ever."""
        self._serving = True
        while True:
            self._wake.clear()
            for claimed in await self._claim():
                self.begin(claimed)
            with contextlib.suppress(TimeoutError):
                # Not wait_for: before Python 3.12 it takes a cancellation for nothing when the event comes with it.
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._wake.wait()

    @property
    def _room(self) -> int:
        """How many more asks may be run; one whose agent waits for an ask of its own takes no place."""
        return max(0, self._roster.settings.max_processes + self.pool.parked - len(self._running))

    @contextmanager
    def place_for(self, to_team: str) -> Iterator[bool]:
        """Whether an ask of this team may be claimed by who stores it; the place is kept until it has begun."""
        free = self._serving and self._room > self._promised and self._can_run(self._roster.teams[to_team])
        self._promised += free
        try:
            yield free
        finally:
            self._promised -= free

    def claim(self, tx: Tx, ask: Ask) -> Claimed | None:
        """Claim an ask in the transaction that stores it, if it is the next to be run."""
        return self._take(tx, [ask.to_team], list(self._conversations.values()), only=ask.id)

    def begin(self, claimed: Claimed) -> None:
        """Work on a claimed ask."""
        loop = asyncio.get_running_loop()
        self._outcomes[claimed.ask.id] = loop.create_future()
        self._running[claimed.ask.id] = loop.create_task(self._work(claimed))
        self._conversations[claimed.ask.id] = claimed.conversation.id

    def works_on(self, ask_id: str) -> bool:
        """Whether this runner is at work on an ask."""
        return ask_id in self._outcomes

    async def outcome(self, ask_id: str, seconds: float) -> Seen | None:
        """How an ask that this runner works on ended, as it was stored; None when it has not, or is not known here."""
        future = self._outcomes.get(ask_id)
        if future is None:
            return None
        await asyncio.wait([future], timeout=max(0.0, seconds))
        return future.result() if future.done() else None

    async def renew(self) -> None:
        """Keep what is being run, and take up what dead runners left."""
        await self._store.write(lambda tx: queries.renew(tx, self._name))
        if await self._store.write(lambda tx: self._recover(tx, None)):
            self._wake.set()

    async def look_after(self) -> None:
        """End idle processes."""
        await self.pool.close_idle(self._roster.settings.idle_timeout_ms / 1000)

    async def stop(self) -> None:
        """Stop working; asks under way wait for the next daemon."""
        self._serving = False
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        await self.pool.close()

    async def maintain(self) -> None:
        """Make long conversations shorter while nobody uses them, and put unused ones away."""
        settings = self._roster.settings
        for conversation in await self._store.read(lambda tx: queries.grown(tx, settings.compact_after_messages)):
            team = self._roster.teams.get(conversation.to_team)
            if team is not None and self._can_run(team) and self._room:
                await self.compact(conversation)
        await self._store.write(lambda tx: queries.archive_unused(tx, tx.now() - settings.archive_after_days * DAY_MS))

    async def compact(self, conversation: Conversation) -> tuple[int | None, int | None]:
        """Have the agent compact its conversation; the tokens before and after, as it told them."""
        team = self._roster.teams[conversation.to_team]
        await self._store.write(lambda tx: queries.set_status(tx, conversation.id, ConversationStatus.COMPACT_PENDING))
        slot, _ = await self._slot(team, conversation)
        try:
            done = await slot.session.compact()
        except CompactionFailed:
            done = await self._sum_up(conversation, slot)
        except BaseException:
            await self.pool.discard(slot)
            raise
        else:
            self.pool.give_back(slot)

        def write(tx: Tx) -> None:
            queries.compacted(tx, conversation.id)
            tx.emit("teams.compacted", str(conversation.id), {"before": done.pre_tokens, "after": done.post_tokens})

        await self._store.write(write)
        return done.pre_tokens, done.post_tokens

    async def _sum_up(self, conversation: Conversation, slot: Slot) -> Compaction:
        """Where compaction fails the agent itself says what mattered, and the conversation goes on in a new session."""
        try:
            turn = await self._turn(slot.session, SUMMARISE)
            if turn.is_error or not turn.text.strip():
                raise AgentFailed("The conversation could be neither compacted nor summed up.")
            session_id = str(uuid.uuid4())
            await self._store.write(
                lambda tx: queries.begin_afresh(tx, conversation.id, session_id, turn.text[:20_000])
            )
            return Compaction(turn.context_tokens, None)
        finally:
            await self.pool.discard(slot)

    async def warm_up(self) -> None:
        """Open the processes of the most used conversations; no model is asked."""
        for conversation in await self._store.read(lambda tx: queries.busiest(tx, self._roster.settings.warm_up)):
            team = self._roster.teams.get(conversation.to_team)
            if team is not None and self._can_run(team) and self._room:
                slot, _ = await self._slot(team, conversation)
                self.pool.give_back(slot)

    async def found(self, team: Team) -> list[FoundSession]:
        """The project's sessions on this machine that no conversation is in."""
        if not self._can_run(team):
            return []
        known = await self._store.read(lambda tx: queries.known_sessions(tx, team.name))
        spec = AgentSpec(project=team.project, env={**self._env, **team.env})
        return [
            session for session in await self._agents[team.agent].list_sessions(spec) if session.session_id not in known
        ]

    async def delete(self, conversation: Conversation) -> None:
        """Delete what the agent keeps of a conversation, on disk and in the store; the next ask begins afresh."""
        team = self._roster.teams[conversation.to_team]
        for slot in self.pool.slots:
            if slot.conversation_id == conversation.id:
                await self.pool.discard(slot)
        await self._agents[team.agent].delete_transcript(self._spec(team, conversation), conversation.session_id)
        await self._move(conversation, str(uuid.uuid4()), None)

    async def relink(self) -> int:
        """Conversations that the store has lost are linked again from what the transcripts say."""
        linked = 0
        for team in list(self._roster.teams.values()):
            for session in await self.found(team):
                frame = read_frame(session.first_prompt or "")
                if frame is not None:
                    linked += await self._store.write(partial(_relink, team.name, *frame, session.session_id))
        return linked

    async def cancel(self, ask: Ask) -> None:
        """Interrupt the turn of an ask that was cancelled."""
        conversation = self._conversations.get(ask.id)
        for slot in self.pool.slots:
            if slot.conversation_id == conversation and slot.busy:
                await slot.session.interrupt()

    # -- one ask ------------------------------------------------------------------------------------------------------

    async def _claim(self) -> list[Claimed]:
        """As many asks as there is room for, each of a conversation of its own."""
        room = max(0, self._room - self._promised)
        teams = [name for name, team in self._roster.teams.items() if self._can_run(team)]
        if not room or not teams:
            return []
        busy = list(self._conversations.values())
        self._promised += room

        def write(tx: Tx) -> list[Claimed]:
            claimed: list[Claimed] = []
            while len(claimed) < room:
                taken = self._take(tx, teams, [*busy, *(one.conversation.id for one in claimed)])
                if taken is None:
                    break
                claimed.append(taken)
            return claimed

        try:
            return await self._store.write(write)
        finally:
            self._promised -= room

    def _take(self, tx: Tx, teams: list[str], busy: list[int], only: str | None = None) -> Claimed | None:
        tx.lock("teams:claim")
        found = queries.next_waiting(tx, self._name, teams, busy)
        conversation = queries.conversation(tx, found.conversation_id) if found else None
        if found is None or conversation is None or only not in (None, found.id):
            return None
        token = uuid.uuid4().hex
        queries.claim(tx, found, self._name, token)
        notices = queries.unseen_notices(tx, found.to_team)
        queries.mark_shown(tx, [notice["id"] for notice in notices])
        return Claimed(found, token, conversation, [(notice["from_team"], notice["text"]) for notice in notices])

    def _can_run(self, team: Team) -> bool:
        return team.agent in self._agents and team.machine in (None, self._name) and team.project.is_dir()

    async def _work(self, claimed: Claimed) -> None:
        ask, token, conversation = claimed.ask, claimed.token, claimed.conversation
        temporary = conversation.thread.startswith(TEMPORARY)
        slot: Slot | None = None
        try:
            team = self._roster.teams[ask.to_team]
            await self._check_budget(team)
            slot, note = await self._slot(team, conversation)
            turn = await self._turn(slot.session, _text(claimed, note))
            if turn.is_error:
                raise AgentFailed(turn.text or turn.subtype or "The agent reported an error.")
            await self._answered(ask, token, turn, note, temporary=temporary)
        except AgentDied as error:
            await self._died(ask, str(error))
        except asyncio.CancelledError:
            await self._store.write(lambda tx: queries.requeue(tx, ask, "Holdfast was stopped; the ask waits again."))
            raise
        except HoldfastError as error:
            await self._failed(ask, token, error.code, str(error))
            if not isinstance(error, AgentFailed | BudgetSpent) and slot is not None:
                await self.pool.discard(slot)
                slot = None
        finally:
            self._running.pop(ask.id, None)
            self._tell(ask, None)
            self._conversations.pop(ask.id, None)
            if slot is not None:
                if slot.session.alive and not temporary:
                    self.pool.give_back(slot)
                else:
                    await self.pool.discard(slot)
            self._wake.set()

    async def _slot(self, team: Team, conversation: Conversation) -> tuple[Slot, str | None]:
        notes: list[str] = []

        async def open_session() -> AgentSession:
            session, note = await self._open(team, conversation)
            if note:
                notes.append(note)
            return session

        slot = await self.pool.take(conversation, self._roster.settings.max_processes, open_session)
        if not conversation.begun or conversation.agent_pid != slot.session.pid:
            await self._store.write(lambda tx: queries.mark_begun(tx, conversation.id, slot.session.pid))
        return slot, notes[0] if notes else conversation.note

    async def _open(self, team: Team, conversation: Conversation) -> tuple[AgentSession, str | None]:
        """The conversation's session: resumed, else begun; what is lost is begun afresh and said so."""
        agent, spec = self._agents[team.agent], self._spec(team, conversation)
        if conversation.lease_by == self._name and conversation.agent_pid is not None:
            await _gone(conversation.agent_pid)
        if conversation.begun:
            # Opening restores the file from the mirror; a file that vanished since is restored by a second try.
            for _ in range(2):
                with contextlib.suppress(SessionMissing):
                    return await agent.open(spec, conversation.session_id, resume=True), None
            # A first turn that never came to its end may have left nothing, and then nothing was lost.
            note = LOST if conversation.message_count else None
            return await self._begin(agent, spec, conversation, str(uuid.uuid4()), note), note
        if conversation.fork_of is not None:
            session = await agent.open(spec, conversation.session_id, resume=False, fork_of=conversation.fork_of)
            return session, None
        return await self._begin(agent, spec, conversation, conversation.session_id, None), None

    async def _begin(
        self, agent: Agent, spec: AgentSpec, conversation: Conversation, session_id: str, note: str | None
    ) -> AgentSession:
        tried = session_id
        for attempt in (1, 2):
            try:
                session = await agent.open(spec, tried, resume=False)
            except (SessionInUse, AgentNotReady) as error:
                if attempt == 2:
                    raise SessionCreationError(
                        f"The agent could not begin a session: {error}",
                        recovery="Ask again, or with temporary true for a conversation of its own.",
                    ) from error
                tried = str(uuid.uuid4())
                continue
            if tried != conversation.session_id:
                await self._move(conversation, tried, note)
            return session
        raise AssertionError("unreachable: the second attempt returns or raises")

    async def _move(self, conversation: Conversation, session_id: str, note: str | None) -> None:
        await self._store.write(lambda tx: queries.set_session(tx, conversation.id, session_id, begun=False, note=note))

    def _spec(self, team: Team, conversation: Conversation) -> AgentSpec:
        async def permitted(tool: str, given: dict[str, Any]) -> bool:
            if team.policy != "ask":
                return False
            ask = await self._store.read(lambda tx: queries.running_in(tx, conversation.id))
            return await self.permissions.request(ask.id if ask else "", team.name, tool, given)

        return AgentSpec(
            project=team.project,
            model=team.model,
            env={**self._env, **team.env, "HOLDFAST_MANAGED": str(conversation.id), "HOLDFAST_TEAM": team.name},
            skip_permissions=team.skip_permissions,
            allowed_tools=team.allowed_tools,
            disallowed_tools=team.disallowed_tools,
            permission=permitted,
        )

    async def _turn(self, session: AgentSession, text: str) -> Turn:
        """One turn; given up when the agent shows no sign of life for too long."""
        alive_at = time.monotonic()

        def seen(event: AgentEvent) -> None:
            nonlocal alive_at
            alive_at = time.monotonic()

        limit = self._roster.settings.stall_timeout_ms / 1000
        turn = asyncio.get_running_loop().create_task(session.send(text, seen))
        try:
            while True:
                done, _ = await asyncio.wait([turn], timeout=max(0.05, alive_at + limit - time.monotonic()))
                if done:
                    return turn.result()
                if time.monotonic() - alive_at >= limit:
                    raise AgentStalled(f"The agent gave no sign of life for {limit:.0f} s and was stopped.")
        finally:
            if not turn.done():
                turn.cancel()
                await asyncio.gather(turn, return_exceptions=True)

    async def _check_budget(self, team: Team) -> None:
        if team.max_cost_usd_per_day is None:
            return
        spent = await self._store.read(lambda tx: queries.spent_since(tx, team.name, tx.now() - DAY_MS))
        if spent >= team.max_cost_usd_per_day * 1_000_000:
            raise BudgetSpent(
                f"Team {team.name} has spent its {team.max_cost_usd_per_day} dollars of the last 24 hours.",
                recovery="Raise maxCostUsdPerDay in teams.json, or wait.",
            )

    # -- outcomes -----------------------------------------------------------------------------------------------------

    async def _answered(self, ask: Ask, token: str, turn: Turn, note: str | None, *, temporary: bool) -> None:
        full = bool(
            turn.context_tokens and turn.context_window and turn.context_tokens > NEARLY_FULL * turn.context_window
        )
        values: dict[str, Any] = {
            "answer": turn.text,
            "note": " ".join(filter(None, (ask.note, note))) or None,
            "duration_ms": turn.duration_ms,
            "cost_microusd": None if turn.cost_usd is None else round(turn.cost_usd * 1_000_000),
            "input_tokens": turn.input_tokens,
            "output_tokens": turn.output_tokens,
        }

        def write(tx: Tx) -> Seen | None:
            if queries.finish(tx, ask, token, AskStatus.ANSWERED, **values):
                queries.used(tx, ask.conversation_id, 2)
                if full:
                    queries.set_status(tx, ask.conversation_id, ConversationStatus.COMPACT_PENDING)
                if temporary:
                    queries.set_status(tx, ask.conversation_id, ConversationStatus.ARCHIVED)
            return look(tx, ask.id)

        self._tell(ask, await self._store.write(write))

    def _tell(self, ask: Ask, seen: Seen | None) -> None:
        """Who waits here for the ask learns how it ended without another look at the store."""
        future = self._outcomes.pop(ask.id, None)
        if future is not None and not future.done():
            future.set_result(seen)

    async def _failed(self, ask: Ask, token: str, code: str, message: str) -> None:
        try:
            await self._store.write(
                lambda tx: queries.finish(tx, ask, token, AskStatus.FAILED, error_code=code, error=message)
            )
        except StoreError:
            logger.exception("an ask's failure could not be stored; its lease will run out")

    async def _died(self, ask: Ask, message: str) -> None:
        await self._store.write(lambda tx: _again(tx, ask, message))

    def _recover(self, tx: Tx, own: str | None) -> int:
        lost = queries.abandoned(tx, own)
        for ask in lost:
            queries.let_go(tx, ask.conversation_id, ask.lease_by or "")
            _again(tx, ask, "The daemon that ran it ended.")
        return len(lost)

    async def _let_go(self, conversation_id: int) -> None:
        await self._store.write(lambda tx: queries.let_go(tx, conversation_id, self._name))


def _text(claimed: Claimed, note: str | None) -> str:
    conversation = claimed.conversation
    summary = None if conversation.begun else conversation.summary
    return framed(
        conversation.from_team, conversation.thread, claimed.ask.text, claimed.notices, summary, lost=note == LOST
    )


async def _gone(pid: int) -> None:
    """Two processes must never write one session: wait until the one of an earlier life has ended, or end it."""
    deadline = time.monotonic() + GONE_SECONDS
    while is_running(pid):
        if time.monotonic() > deadline:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        await asyncio.sleep(0.05)


def _relink(to_team: str, sender: str, thread: str, session_id: str, tx: Tx) -> int:
    """Link a session to its pair, unless the pair has a conversation of its own already."""
    if queries.between(tx, sender, to_team, thread) is not None:
        return 0
    queries.adopt(tx, sender, to_team, thread, session_id)
    return 1


def _again(tx: Tx, ask: Ask, why: str) -> None:
    """Once more if nothing was answered and it was not tried often enough; else a typed failure."""
    current = queries.ask(tx, ask.id)
    if current is None or current.status != AskStatus.RUNNING.value:
        return
    if current.attempts < ATTEMPTS:
        queries.requeue(tx, ask, f"{why} It was asked again.")
    else:
        queries.finish(
            tx, ask, None, AskStatus.FAILED, error_code=AgentLost.code, error=f"{why} It had been asked twice."
        )
