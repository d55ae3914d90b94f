"""The pool: one agent process per conversation, within the limit; idle ones make room.

A conversation's session is opened on this machine, resumed, or begun afresh when it is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from holdfast.agents import AgentEvent, AgentSession, AgentSpec, FoundSession, Lack, RunPart
from holdfast.agents.errors import AgentNotReady, SessionInUse, SessionMissing
from holdfast.errors import StoreError
from holdfast.identity.managed import VARIABLE, token_for
from holdfast.ids import random_id
from holdfast.lazy_dataclass import dataclass
from holdfast.process.alive import is_running
from holdfast.store import Store
from holdfast.teams.errors import SessionCreationError
from holdfast.teams.model import COPY, Conversation, heading, to_evict
from holdfast.teams.permissions import Permissions
from holdfast.teams.queries import conversations
from holdfast.teams.team import Team
from holdfast.text.quoting import in_quotes, named

GONE_SECONDS = 5.0
AHEAD_SECONDS = 0.25
"""How long what was looked up while an ask was being stored holds for its turn; a store that takes longer is rare."""
MACHINE_SHOWN = 12
LOST = "The earlier conversation could not be found; this is a fresh one."

Open = Callable[[], Awaitable[AgentSession]]
SettingsOff = Callable[[Path], Awaitable[str | None]]
"""Returns why an agent may not use its project's settings; None if it may."""


async def always_off(project: Path) -> str:
    """Follow no project's settings."""
    return "The project's settings are off."


@dataclass(frozen=True, slots=True)
class _LookAhead:
    """What was looked up for the next turn of a warm process while its ask was being stored."""

    off: asyncio.Future[str | None]
    """Why the project's settings are off."""
    overtaken: asyncio.Future[bool]
    began: float = field(default_factory=time.monotonic)

    @property
    def is_fresh(self) -> bool:
        return time.monotonic() - self.began < AHEAD_SECONDS


@dataclass(slots=True, eq=False)
class Slot:
    """One conversation's process."""

    conversation_id: int
    between: tuple[str, str, str]
    """From which team, to which one, and the thread."""
    session: AgentSession
    opened_as: tuple[Team, bool]
    """How the team was configured, and whether its project's settings were used."""
    busy: bool = True
    asks: int = 0
    """How many asks its agent made and waits for; meanwhile it does not count against the limit."""
    requests: int = 0
    """How many permissions its agent waits for."""
    used_at: float = field(default_factory=time.monotonic)
    alive_at: float = field(default_factory=time.monotonic)
    """When its agent last showed a sign of life."""
    doing: str | None = None
    """What its agent does in this turn, in words."""
    retrying: bool = False
    """Whether the model refused its agent, which is retrying."""
    ahead: _LookAhead | None = None

    @property
    def team(self) -> str:
        """The team whose agent it is."""
        return self.between[1]

    @property
    def waits(self) -> bool:
        """Whether its agent waits for somebody else, so that its silence is no stall."""
        return bool(self.asks or self.requests)

    def take(self, event: AgentEvent) -> None:
        """Record what its agent does. A model that keeps refusing is no sign of life."""
        if event.kind == "retry":
            self.doing = f"trying its model again, which {event.text}"
        elif event.kind == "tool":
            self.doing = f"using {named(event.text)}"
        elif event.kind != "status":
            self.doing = None
        self.retrying = event.kind == "retry" or (self.retrying and event.kind == "status")
        if not self.retrying:
            self.alive_at = time.monotonic()


class Pool:
    """Agent processes of this daemon."""

    def __init__(
        self, store: Store, name: str, agents: Mapping[str, RunPart], env: Mapping[str, str], settings_off: SettingsOff
    ) -> None:
        """`name`: this machine's; `env`: added to every agent's environment."""
        self._store = store
        self._name = name
        self._agents = agents
        self._env = env
        self.settings_off = settings_off
        self.permissions = Permissions(store)
        self._slots: dict[int, Slot] = {}
        self._opening = 0
        self._turns: dict[int, asyncio.Lock] = {}
        self._changing = asyncio.Lock()

    @property
    def slots(self) -> list[Slot]:
        """Every process there is."""
        return list(self._slots.values())

    @property
    def parked(self) -> int:
        """How many processes wait for an ask that their agent made."""
        return sum(slot.asks > 0 for slot in self._slots.values())

    def slot(self, conversation_id: int) -> Slot | None:
        """The conversation's process, if it has one."""
        return self._slots.get(conversation_id)

    def can_run(self, team: Team) -> bool:
        """Return whether a team's agent can run on this machine."""
        return self.why_not(team) is None

    def is_elsewhere(self, team: Team) -> bool:
        """Return whether teams.json has another machine run the team."""
        return team.machine not in (None, self._name)

    def why_not(self, team: Team) -> str | None:
        """Return why a team's agent cannot run on this machine, and what to do; None if it can."""
        if self.is_elsewhere(team):
            # The beginning is enough to tell them apart; the whole looks like a secret and would be masked.
            other, this = (in_quotes(name, MACHINE_SHOWN) for name in (str(team.machine), self._name))
            return f"It runs on the machine {other}; this is {this}."
        # In this order: is_dir raises where a parent may not be entered.
        if not (os.access(team.project, os.R_OK | os.X_OK) and team.project.is_dir()):
            project = named(str(team.project), 500)
            return f"Its project {project} is not a directory that can be read. Restore it, or correct teams.json."
        if team.agent not in self._agents:
            return f"Its agent {named(team.agent)} cannot be run here."
        return None

    def has_process(self, team: str) -> bool:
        """Return whether an agent of a team is open, so that its program must be there."""
        return any(slot.team == team for slot in self.slots)

    def missing_agent(self, team: Team) -> str | None:
        """Return why its agent is not installed, which takes longer to find out; None if it is."""
        return self._agents[team.agent].available()

    async def sessions(self, team: Team) -> list[FoundSession]:
        """Return the sessions of a team's project on this machine."""
        agent = self._agents[team.agent]
        if Lack.LIST in agent.lacks:
            return []
        return await agent.list_sessions(self.agent_of(team)[1])

    def agent_of(self, team: Team) -> tuple[RunPart, AgentSpec]:
        """Return a team's agent and its directory, for operations without a process."""
        return self._agents[team.agent], AgentSpec(project=team.project, env={**self._env, **team.env})

    async def delete(self, team: Team, conversation: Conversation) -> None:
        """Delete a conversation's transcripts, on disk and in the store."""
        for slot in self.slots:
            if slot.conversation_id == conversation.id:
                await self.discard(slot)
        await self._agents[team.agent].delete_transcript(self._spec(team, conversation), conversation.session_id)

    def forget(self, session_ids: Collection[str]) -> None:
        """Delete what agents keep about these conversations in the data directory."""
        for agent in self._agents.values():
            agent.forget(session_ids)

    async def open(self, team: Team, conversation: Conversation, limit: int) -> tuple[Slot, str | None]:
        """Return the conversation's process, and what its caller must be told."""
        notes: list[str | None] = []
        warm = self._slots.get(conversation.id)
        ahead = warm.ahead if warm is not None and warm.ahead is not None and warm.ahead.is_fresh else None
        follows = await (self.settings_off(team.project) if ahead is None else ahead.off) is None

        async def open_session() -> AgentSession:
            session, note = await self._open(team, conversation, follows)
            notes.append(note)
            return session

        slot = await self._take(conversation, limit, (team, follows), open_session)
        try:
            if not conversation.begun or conversation.agent_pid != slot.session.pid:
                await self._store.write(lambda tx: conversations.mark_begun(tx, conversation.id, slot.session.pid))
        except BaseException:
            await self.discard(slot)
            raise
        return slot, next(filter(None, notes), conversation.note)

    def look_ahead(self, team: Team, between: tuple[str, str, str]) -> None:
        """Begin to look whether a warm process can take the turn of an ask that is about to be stored."""
        slot = next((one for one in self.slots if one.between == between and not one.busy), None)
        if slot is not None:
            tasks = (
                asyncio.ensure_future(self.settings_off(team.project)),
                asyncio.ensure_future(slot.session.is_overtaken()),
            )
            for task in tasks:  # if the ask is not run at once, nobody comes for an error
                task.add_done_callback(lambda done: done.cancelled() or done.exception())
            slot.ahead = _LookAhead(*tasks)

    async def _take(
        self, conversation: Conversation, limit: int, opened_as: tuple[Team, bool], open_session: Open
    ) -> Slot:
        """Return the conversation's process, warm or newly opened; idle ones of others make room.

        The caller has exclusive use of it until it is given back or discarded.
        """
        turn = self._turns.setdefault(conversation.id, asyncio.Lock())
        await turn.acquire()
        try:
            slot = await self._warm_or_opened(conversation, limit, opened_as, open_session)
        except BaseException:
            turn.release()
            raise
        slot.busy, slot.used_at = True, time.monotonic()
        return slot

    async def _warm_or_opened(
        self, conversation: Conversation, limit: int, opened_as: tuple[Team, bool], open_session: Open
    ) -> Slot:
        async with self._changing:
            slot = self._slots.get(conversation.id)
            if slot is not None and await _is_usable(slot, opened_as):
                slot.busy = True
                return slot
            if slot is not None:
                del self._slots[conversation.id]
                await slot.session.close()  # the conversation's lease stays: its turn is about to begin
            await self._make_room(limit - 1)
            self._opening += 1
        try:
            session = await open_session()
        finally:
            self._opening -= 1
        between = conversation.from_team, conversation.to_team, conversation.thread
        slot = self._slots[conversation.id] = Slot(conversation.id, between, session, opened_as)
        return slot

    async def trim(self, limit: int) -> None:
        """End idle processes beyond the limit, which is exceeded while an agent waits for another's answer."""
        if len(self._slots) + self._opening - self.parked > limit:
            async with self._changing:
                await self._make_room(limit)

    async def _make_room(self, limit: int) -> None:
        while len(self._slots) + self._opening - self.parked > limit:
            evicted = to_evict([(slot.conversation_id, slot.used_at) for slot in self.slots if not slot.busy])
            if evicted is None:
                break
            await self._drop(self._slots[evicted])

    def give_back(self, slot: Slot) -> None:
        """Return a process after its turn; it stays warm."""
        slot.used_at = time.monotonic()
        self._release(slot)

    async def discard(self, slot: Slot) -> None:
        """End a process that cannot be used any more."""
        try:
            async with self._changing:
                await self._drop(slot)
        finally:
            self._release(slot)

    def _release(self, slot: Slot) -> None:
        if slot.busy:
            slot.busy, slot.doing = False, None
            self._turns[slot.conversation_id].release()

    async def close_idle(self, idle_seconds: float) -> None:
        """End processes that were idle for too long, and forget those that died."""
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
        await self.let_go(slot.conversation_id)

    async def let_go(self, conversation_id: int) -> None:
        """Release the lease of a conversation that has no process here."""
        with contextlib.suppress(StoreError):  # the store cannot write now: the lease expires by itself
            await self._store.write(lambda tx: conversations.let_go(tx, conversation_id, self._name))

    async def _open(self, team: Team, conversation: Conversation, follows: bool) -> tuple[AgentSession, str | None]:
        """Open the conversation's session: resume it, or begin it; one that is lost is begun again, with a note."""
        agent, spec = self._agents[team.agent], replace(self._spec(team, conversation), project_settings=follows)
        if conversation.lease_by == self._name and conversation.agent_pid is not None:
            await _gone(conversation.agent_pid)
        if conversation.begun:
            # Opening restores the file from the store; one that vanished since is restored by a second try.
            for _ in range(2):
                with contextlib.suppress(SessionMissing):
                    return await agent.open(spec, conversation.session_id, resume=True), None
            # A first turn that never ended may have written nothing; then nothing was lost.
            note = LOST if conversation.message_count else None
            return await self._begin(agent, spec, conversation, random_id(), note), note
        if conversation.fork_of is not None:
            copy = await agent.fork(spec, conversation.fork_of, heading(conversation.from_team, conversation.thread))
            await self.move(conversation, copy, None)
            return await agent.open(spec, copy, resume=True), None
        return await self._begin(agent, spec, conversation, conversation.session_id, None), None

    async def _begin(
        self, agent: RunPart, spec: AgentSpec, conversation: Conversation, session_id: str, note: str | None
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
                tried = random_id()
                continue
            try:
                if session.session_id != conversation.session_id:  # this try's id, or the agent's own choice
                    await self.move(conversation, session.session_id, note)
            except BaseException:
                await session.close()
                raise
            return session
        raise AssertionError("unreachable: the second attempt returns or raises")

    async def move(self, conversation: Conversation, session_id: str, note: str | None) -> None:
        """Continue the conversation in another session."""
        await self._store.write(
            lambda tx: conversations.set_session(tx, conversation.id, session_id, begun=False, note=note)
        )

    def _spec(self, team: Team, conversation: Conversation) -> AgentSpec:
        """Return how the team's agent is to work in a conversation."""

        is_copy = conversation.thread.startswith(COPY)

        async def permitted(tool: str, given: dict[str, Any]) -> bool | str:
            if team.policy != "ask" and not is_copy:
                return False
            ask = await self._store.read(lambda tx: conversations.running_in(tx, conversation.id))
            slot = self.slot(conversation.id)
            if ask is None or slot is None:
                return "Nobody waits for this turn, so nobody is asked."
            slot.requests += 1
            try:
                return await self.permissions.request(ask.id, team.name, tool, given)
            finally:
                slot.requests -= 1
                slot.alive_at = time.monotonic()

        return AgentSpec(
            project=team.project,
            model=team.model,
            env={**self._env, **team.env, VARIABLE: token_for(conversation.id, team.name), "HOLDFAST_TEAM": team.name},
            skip_permissions=team.skip_permissions and not is_copy,
            allowed_tools=() if is_copy else team.allowed_tools,
            asks_first=is_copy,
            disallowed_tools=team.disallowed_tools,
            permission=permitted,
        )


async def _is_usable(slot: Slot, opened_as: tuple[Team, bool]) -> bool:
    """Return whether a process may take the next turn: alive, with its team's rights, alone with its conversation."""
    ahead, slot.ahead = slot.ahead, None
    if not slot.session.alive or slot.opened_as != opened_as:
        return False
    return not await (ahead.overtaken if ahead is not None and ahead.is_fresh else slot.session.is_overtaken())


async def _gone(pid: int) -> None:
    """Wait for the process of an earlier daemon to end, or kill it: two processes must never write one session."""
    began = time.monotonic()
    while is_running(pid):
        waited = time.monotonic() - began
        if waited > 2 * GONE_SECONDS:
            raise SessionInUse(
                f"Process {pid} of an earlier daemon still has the conversation.", recovery="End it, then ask again."
            )
        if waited > GONE_SECONDS:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        await asyncio.sleep(0.05)
