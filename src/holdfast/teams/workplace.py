"""Where agents work: a conversation's session, opened on this machine, resumed, or begun afresh when it is lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.agents import AgentEvent, AgentSession, AgentSpec, FoundSession, RunPart, Turn
from holdfast.agents.errors import AgentNotReady, SessionInUse, SessionMissing
from holdfast.errors import StoreError
from holdfast.identity.managed import VARIABLE, token_for
from holdfast.ids import random_id
from holdfast.process.alive import is_running
from holdfast.store import Store
from holdfast.teams.config import Roster
from holdfast.teams.errors import AgentStalled, SessionCreationError
from holdfast.teams.model import Conversation
from holdfast.teams.permissions import Permissions
from holdfast.teams.pool import Pool, Slot
from holdfast.teams.queries import conversations
from holdfast.teams.team import Team

GONE_SECONDS = 5.0
SettingsOff = Callable[[Path], Awaitable[str | None]]
"""Why an agent may not follow the settings that its project brings; None where it may."""
LOST = "The earlier conversation could not be found any more; this is a fresh one."


async def always_off(project: Path) -> str:
    """Follow no project's settings."""
    return "The project's settings are off."


class Workplace:
    """The agents of this machine, and the processes in which they are at work."""

    def __init__(
        self, store: Store, name: str, agents: Mapping[str, RunPart], env: Mapping[str, str], settings_off: SettingsOff
    ) -> None:
        self._store = store
        self._name = name
        self._agents = agents
        self._env = env
        self.settings_off = settings_off
        self.roster = Roster()
        self.pool = Pool(self._let_go)
        self.permissions = Permissions(store)

    def can_run(self, team: Team) -> bool:
        """Whether a team's agent can run on this machine."""
        return team.agent in self._agents and team.machine in (None, self._name) and team.project.is_dir()

    async def sessions(self, team: Team) -> list[FoundSession]:
        """The sessions of a team's project that lie on this machine."""
        spec = AgentSpec(project=team.project, env={**self._env, **team.env})
        return await self._agents[team.agent].list_sessions(spec)

    async def delete(self, team: Team, conversation: Conversation) -> None:
        """Delete what the agent keeps of a conversation, on disk and in the store."""
        for slot in self.pool.slots:
            if slot.conversation_id == conversation.id:
                await self.pool.discard(slot)
        await self._agents[team.agent].delete_transcript(self.spec(team, conversation), conversation.session_id)

    async def slot(self, team: Team, conversation: Conversation) -> tuple[Slot, str | None, bool]:
        """The conversation's process; what its caller must be told; whether it was opened just now."""
        notes: list[str | None] = []

        async def open_session() -> AgentSession:
            session, note = await self._open(team, conversation)
            notes.append(note)
            return session

        slot = await self.pool.take(conversation, self.roster.settings.max_processes, open_session)
        try:
            if not conversation.begun or conversation.agent_pid != slot.session.pid:
                await self._store.write(lambda tx: conversations.mark_begun(tx, conversation.id, slot.session.pid))
        except BaseException:
            await self.pool.discard(slot)
            raise
        return slot, next(filter(None, notes), conversation.note), bool(notes)

    async def _open(self, team: Team, conversation: Conversation) -> tuple[AgentSession, str | None]:
        """The conversation's session: resumed, else begun; what is lost is begun afresh and said so."""
        follows = await self.settings_off(team.project) is None
        agent, spec = self._agents[team.agent], replace(self.spec(team, conversation), project_settings=follows)
        if conversation.lease_by == self._name and conversation.agent_pid is not None:
            await _gone(conversation.agent_pid)
        if conversation.begun:
            # Opening restores the file from the mirror; a file that vanished since is restored by a second try.
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
        """The conversation goes on in another session."""
        await self._store.write(
            lambda tx: conversations.set_session(tx, conversation.id, session_id, begun=False, note=note)
        )

    def spec(self, team: Team, conversation: Conversation) -> AgentSpec:
        """How the team's agent is to work in a conversation."""

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

    async def turn(self, session: AgentSession, text: str) -> Turn:
        """One turn; given up when the agent shows no sign of life for too long."""
        alive_at = time.monotonic()

        def seen(event: AgentEvent) -> None:
            nonlocal alive_at
            alive_at = time.monotonic()

        limit = self.roster.settings.stall_timeout_ms / 1000
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

    async def _let_go(self, conversation_id: int) -> None:
        """Give up the lease of a conversation whose process has ended."""
        with contextlib.suppress(StoreError):  # a store that takes nothing now: the lease runs out by itself
            await self._store.write(lambda tx: conversations.let_go(tx, conversation_id, self._name))


async def _gone(pid: int) -> None:
    """Two processes must never write one session: wait until the one of an earlier life has ended, or end it."""
    deadline = time.monotonic() + GONE_SECONDS
    while is_running(pid):
        if time.monotonic() > deadline:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        await asyncio.sleep(0.05)
