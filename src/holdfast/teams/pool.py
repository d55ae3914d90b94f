"""The pool: one agent process per conversation, never more than allowed, idle ones making room.

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

from holdfast.agents import AgentSession, AgentSpec, FoundSession, Lack, RunPart
from holdfast.agents.errors import AgentNotReady, SessionInUse, SessionMissing
from holdfast.errors import StoreError
from holdfast.identity.managed import VARIABLE, token_for
from holdfast.ids import random_id
from holdfast.lazy_dataclass import dataclass
from holdfast.process.alive import is_running
from holdfast.store import Store
from holdfast.teams.errors import SessionCreationError
from holdfast.teams.model import Conversation, to_evict
from holdfast.teams.permissions import Permissions
from holdfast.teams.queries import conversations
from holdfast.teams.team import Team
from holdfast.text.quoting import in_quotes, named

GONE_SECONDS = 5.0
LOST = "The earlier conversation could not be found any more; this is a fresh one."

Open = Callable[[], Awaitable[AgentSession]]
SettingsOff = Callable[[Path], Awaitable[str | None]]
"""Returns why an agent may not use its project's settings; None if it may."""


async def always_off(project: Path) -> str:
    """Follow no project's settings."""
    return "The project's settings are off."


@dataclass(slots=True, eq=False)
class Slot:
    """One conversation's process."""

    conversation_id: int
    team: str
    session: AgentSession
    opened_as: tuple[Team, bool]
    """How the team was configured, and whether its project's settings were used."""
    busy: bool = True
    parked: bool = False
    """Its agent waits for an ask of its own, so it takes no place."""
    used_at: float = field(default_factory=time.monotonic)


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
        """How many processes wait for an ask of their own."""
        return sum(slot.parked for slot in self._slots.values())

    def park(self, conversation_id: int, parked: bool) -> None:
        """Note that the conversation's agent waits for another ask, or goes on."""
        slot = self._slots.get(conversation_id)
        if slot is not None:
            slot.parked = parked

    def can_run(self, team: Team) -> bool:
        """Return whether a team's agent can run on this machine."""
        return self.why_not(team) is None

    def is_elsewhere(self, team: Team) -> bool:
        """Return whether teams.json has another machine run the team."""
        return team.machine not in (None, self._name)

    def why_not(self, team: Team) -> str | None:
        """Return why a team's agent cannot run on this machine, and what to do; None if it can."""
        if self.is_elsewhere(team):
            return f"It runs on the machine {in_quotes(str(team.machine), 128)}; this is {self._name}."
        if not team.project.is_dir():
            return f"Its project {named(str(team.project), 500)} is not a directory. Restore it, or correct teams.json."
        if team.agent not in self._agents:
            return f"Its agent {named(team.agent)} cannot be run here."
        return None

    def missing_agent(self, team: Team) -> str | None:
        """Return why its agent is not there, which takes longer to find out; None if it is."""
        return self._agents[team.agent].available()

    async def sessions(self, team: Team) -> list[FoundSession]:
        """Return the sessions of a team's project on this machine."""
        agent = self._agents[team.agent]
        if Lack.LIST in agent.lacks:
            return []
        return await agent.list_sessions(AgentSpec(project=team.project, env={**self._env, **team.env}))

    async def delete(self, team: Team, conversation: Conversation) -> None:
        """Delete a conversation's transcripts, on disk and in the store."""
        for slot in self.slots:
            if slot.conversation_id == conversation.id:
                await self.discard(slot)
        await self._agents[team.agent].delete_transcript(self._spec(team, conversation), conversation.session_id)

    def forget(self, session_ids: Collection[str]) -> None:
        """Delete what agents keep of these conversations in the data directory."""
        for agent in self._agents.values():
            agent.forget(session_ids)

    async def open(self, team: Team, conversation: Conversation, limit: int) -> tuple[Slot, str | None]:
        """Return the conversation's process, and what its caller must be told."""
        notes: list[str | None] = []
        follows = await self.settings_off(team.project) is None

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

    async def _take(
        self, conversation: Conversation, limit: int, opened_as: tuple[Team, bool], open_session: Open
    ) -> Slot:
        """Return the conversation's process, warm or newly opened; idle ones of others make room.

        The caller has it alone until it is given back or discarded.
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
            if slot is not None and slot.session.alive and slot.opened_as == opened_as:
                slot.busy = True
                return slot
            if slot is not None:  # it died, or has rights that its team no longer has
                del self._slots[conversation.id]
                await slot.session.close()  # the conversation's lease stays: its turn is about to begin
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
        slot = self._slots[conversation.id] = Slot(conversation.id, conversation.to_team, session, opened_as)
        return slot

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
            slot.busy = slot.parked = False
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
        with contextlib.suppress(StoreError):  # a store that takes nothing now: the lease runs out by itself
            await self._store.write(lambda tx: conversations.let_go(tx, slot.conversation_id, self._name))

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
            # A first turn that never came to its end may have left nothing, and then nothing was lost.
            note = LOST if conversation.message_count else None
            return await self._begin(agent, spec, conversation, random_id(), note), note
        if conversation.fork_of is not None:
            session = await agent.open(spec, conversation.session_id, resume=False, fork_of=conversation.fork_of)
            return session, None
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
                if session.session_id != conversation.session_id:  # this try's, or one that the agent chose itself
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

        async def permitted(tool: str, given: dict[str, Any]) -> bool | str:
            if team.policy != "ask":
                return False
            ask = await self._store.read(lambda tx: conversations.running_in(tx, conversation.id))
            return await self.permissions.request(ask.id if ask else "", team.name, tool, given)

        return AgentSpec(
            project=team.project,
            model=team.model,
            env={**self._env, **team.env, VARIABLE: token_for(conversation.id, team.name), "HOLDFAST_TEAM": team.name},
            skip_permissions=team.skip_permissions,
            allowed_tools=team.allowed_tools,
            disallowed_tools=team.disallowed_tools,
            permission=permitted,
        )


async def _gone(pid: int) -> None:
    """Wait for the process of an earlier daemon, or kill it: two processes must never write one session."""
    deadline = time.monotonic() + GONE_SECONDS
    while is_running(pid):
        if time.monotonic() > deadline:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        await asyncio.sleep(0.05)
