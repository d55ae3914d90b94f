"""Maintenance of conversations: compacting, archiving, warming up, finding lost ones on disk, deleting."""

from __future__ import annotations

import asyncio
from functools import partial

from holdfast.agents import Compaction, FoundSession
from holdfast.agents.errors import CompactionFailed, PartMissing
from holdfast.identity import forgotten_queries
from holdfast.identity.project import RootSource, locate
from holdfast.ids import random_id
from holdfast.store import Store, Tx
from holdfast.store.calls import CallKey, first_time, require_unanswered
from holdfast.teams.errors import AgentFailed
from holdfast.teams.model import Conversation, ConversationStatus, read_frame
from holdfast.teams.pool import Slot
from holdfast.teams.queries import conversations
from holdfast.teams.runner import Runner
from holdfast.teams.team import Team

DAY_MS = 24 * 3_600_000
SUMMARISE = (
    "Summarise this conversation for whoever continues it: what was asked, what was answered and decided, what is open."
    " Answer with the summary alone."
)


class Maintenance:
    """Maintains conversations while nobody waits for them."""

    def __init__(self, store: Store, runner: Runner) -> None:
        self._store = store
        self._runner = runner

    async def maintain(self) -> None:
        """Compact long conversations while nobody uses them, and archive unused ones."""
        settings = self._runner.config.settings
        for conversation in await self._store.read(lambda tx: conversations.grown(tx, settings.compact_after_messages)):
            team = self._runner.config.teams.get(conversation.to_team)
            if team is not None and self._runner.pool.can_run(team) and self._runner.room:
                await self.compact(conversation)
        await self._store.write(
            lambda tx: conversations.archive_unused(tx, tx.now() - settings.archive_after_days * DAY_MS)
        )

    async def compact(self, conversation: Conversation, key: CallKey | None = None) -> Compaction:
        """Have the agent compact its conversation; return the tokens before and after, as it reported them."""
        team = self._runner.config.teams[conversation.to_team]

        def begin(tx: Tx) -> None:
            require_unanswered(tx, key)
            conversations.set_status(tx, conversation.id, ConversationStatus.COMPACT_PENDING)

        await self._store.write(begin)
        slot, _ = await self._runner.open(team, conversation)
        try:
            done = await slot.session.compact()
        except (CompactionFailed, PartMissing):
            done = await self._sum_up(conversation, slot)
        except BaseException:
            await self._runner.pool.discard(slot)
            raise
        else:
            self._runner.pool.give_back(slot)

        def write(tx: Tx) -> Compaction:
            conversations.compacted(tx, conversation.id)
            tx.emit("teams.compacted", str(conversation.id), {"before": done.pre_tokens, "after": done.post_tokens})
            return done

        return await self._store.write(first_time(key, write))

    async def _sum_up(self, conversation: Conversation, slot: Slot) -> Compaction:
        """Have the agent summarise the conversation, and continue it in a new session: compaction failed."""
        try:
            turn = await self._runner.turn(slot.session, SUMMARISE)
            if turn.is_error or not turn.text.strip():
                raise AgentFailed("The conversation could be neither compacted nor summed up.")
            session_id = random_id()
            await self._store.write(
                lambda tx: conversations.begin_afresh(tx, conversation.id, session_id, turn.text[:20_000])
            )
            return Compaction(turn.context_tokens, None)
        finally:
            await self._runner.pool.discard(slot)

    async def warm_up(self) -> None:
        """Open the processes of the most used conversations; no model is asked."""
        for conversation in await self._store.read(
            lambda tx: conversations.busiest(tx, self._runner.config.settings.warm_up)
        ):
            team = self._runner.config.teams.get(conversation.to_team)
            if team is not None and self._runner.pool.can_run(team) and self._runner.room:
                slot, _ = await self._runner.open(team, conversation)
                self._runner.pool.give_back(slot)

    async def found(self, team: Team) -> list[FoundSession]:
        """Return the project's sessions on this machine that belong to no conversation."""
        if not self._runner.pool.can_run(team):
            return []
        known = await self._store.read(lambda tx: conversations.known_sessions(tx, team.name))
        return [session for session in await self._runner.pool.sessions(team) if session.session_id not in known]

    async def delete(self, conversation: Conversation) -> None:
        """Delete a conversation's transcripts, on disk and in the store; the next ask begins a new session."""
        await self._runner.pool.delete(self._runner.config.teams[conversation.to_team], conversation)
        await self._runner.pool.move(conversation, random_id(), None)

    async def relink(self) -> int:
        """Link conversations that the store lost again, from their transcripts; not those it was told to forget."""
        linked = 0
        for team in list(self._runner.config.teams.values()):
            root = await asyncio.to_thread(locate, str(team.project), RootSource.DIRECTORY)
            since = await self._store.read(partial(forgotten_queries.until, root=root))
            for session in await self.found(team):
                frame = read_frame(session.first_prompt or "")
                if frame is not None and session.modified_at > since:
                    linked += await self._store.write(partial(_relink, team.name, *frame, session.session_id))
        return linked


def _relink(to_team: str, sender: str, thread: str, session_id: str, tx: Tx) -> int:
    """Link a session to its pair, unless the pair has a conversation of its own already."""
    if conversations.between(tx, sender, to_team, thread) is not None:
        return 0
    conversations.adopt(tx, sender, to_team, thread, session_id)
    return 1
