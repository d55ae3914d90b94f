"""The agents' sessions behind conversations: copied, deleted, and found again on disk."""

from __future__ import annotations

import asyncio
from functools import partial

from holdfast.agents import FoundSession
from holdfast.identity import forgotten_queries
from holdfast.identity.project import RootSource, locate
from holdfast.ids import random_id
from holdfast.store import Store, Tx
from holdfast.teams.model import Conversation, heading, is_temporary, read_frame
from holdfast.teams.queries import conversations
from holdfast.teams.runner import Runner
from holdfast.teams.team import Team


class Sessions:
    """Copies, deletes and finds the sessions of teams' agents."""

    def __init__(self, store: Store, runner: Runner) -> None:
        self._store = store
        self._runner = runner

    async def found(self, team: Team) -> list[FoundSession]:
        """Return the project's sessions on this machine that belong to no conversation."""
        if not self._runner.pool.can_run(team):
            return []
        known = await self._store.read(conversations.known_sessions)
        return [session for session in await self._runner.pool.sessions(team) if session.session_id not in known]

    async def copy(self, original: Conversation, thread: str) -> str:
        """Copy a conversation's session as it is now, for a thread; return the copy's id."""
        agent, spec = self._runner.pool.agent_of(self._runner.config.teams[original.to_team])
        return await agent.fork(spec, original.session_id, heading(original.from_team, thread))

    async def discard(self, to_team: str, session_id: str) -> None:
        """Delete a session that belongs to no conversation."""
        agent, spec = self._runner.pool.agent_of(self._runner.config.teams[to_team])
        await agent.delete_transcript(spec, session_id)

    async def delete(self, conversation: Conversation) -> None:
        """Delete a conversation's transcripts, on disk and in the store, also those of sessions that it left.

        The next ask begins a new session, which is told nothing about them."""
        team = self._runner.config.teams[conversation.to_team]
        await self._runner.pool.delete(team, conversation)
        for session, frames in await self._ours(team):
            if session.is_kept and frames[-1] == (conversation.from_team, conversation.thread):
                await self.discard(team.name, session.session_id)
        await self._store.write(lambda tx: conversations.leave_session(tx, conversation.id, random_id(), None))

    async def relink(self) -> int:
        """Relink conversations that the store lost, from their transcripts; not forgotten ones."""
        linked = 0
        for team in list(self._runner.config.teams.values()):
            root = await asyncio.to_thread(locate, str(team.project), RootSource.DIRECTORY)
            since = await self._store.read(partial(forgotten_queries.until, root=root))
            for session, frames in await self._ours(team):
                if session.modified_at > since and not is_temporary(frames[-1][1]):
                    write = partial(_relink, team.name, *frames[-1], session.session_id, len(frames))
                    linked += await self._store.write(write)
        return linked

    async def _ours(self, team: Team) -> list[tuple[FoundSession, list[tuple[str, str]]]]:
        """Return the found sessions that Holdfast spoke in, the latest first, with the pair and thread of each text.

        Its last message tells which conversation a session belongs to: a copy begins with its original's messages."""
        ours = []
        for session in [] if self._shares_its_project(team) else await self.found(team):
            if read_frame(session.first_prompt or "") is not None:
                agent, spec = self._runner.pool.agent_of(team)
                headings = await agent.headings(spec, session.session_id)
                frames = [frame for one in headings if (frame := read_frame(one)) is not None]
                ours += [(session, frames)] if frames else []
        return ours

    def _shares_its_project(self, team: Team) -> bool:
        """Return whether several teams share a project, so that a transcript cannot tell which of them was asked."""
        return sum(other.project == team.project for other in self._runner.config.teams.values()) > 1


def _relink(to_team: str, sender: str, thread: str, session_id: str, messages: int, tx: Tx) -> int:
    """Link a session to its pair, unless the pair already has a conversation."""
    if conversations.between(tx, sender, to_team, thread) is not None:
        return 0
    made = conversations.adopt(tx, sender, to_team, thread, session_id)
    conversations.used(tx, made.id, messages)
    return 1
