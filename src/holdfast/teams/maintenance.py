"""Maintenance of conversations: compacting, archiving, warming up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from holdfast.agents import Compaction
from holdfast.agents.errors import CompactionFailed, PartMissing
from holdfast.errors import Conflict, HoldfastError, StoreError
from holdfast.ids import random_id
from holdfast.store import Store, Tx
from holdfast.store.calls import AlreadyAnswered, CallKey, first_time, require_unanswered
from holdfast.teams.errors import AgentFailed, AgentStalled
from holdfast.teams.model import Conversation, ConversationStatus
from holdfast.teams.pool import Slot
from holdfast.teams.queries import conversations
from holdfast.teams.runner import Runner

DAY_MS = 24 * 3_600_000
SUMMARISE = (
    "Summarise this conversation for whoever continues it: what was asked, what was answered and decided, what is open."
    " Answer with the summary alone."
)

logger = logging.getLogger(__name__)


class Maintenance:
    """Maintains conversations while nobody waits for them."""

    def __init__(self, store: Store, runner: Runner) -> None:
        self._store = store
        self._runner = runner

    async def maintain(self) -> None:
        """Compact long conversations while nobody uses them, and archive unused ones."""
        settings = self._runner.config.settings
        for conversation in await self._store.read(
            lambda tx: conversations.grown(tx, self._runner.name, self._runner.teams, settings.compact_after_messages)
        ):
            await self._if_possible(self.compact, conversation)
        await self._store.write(
            lambda tx: conversations.archive_unused(tx, tx.now() - settings.archive_after_days * DAY_MS)
        )

    async def _if_possible(self, work: Callable[[Conversation], Awaitable[object]], conversation: Conversation) -> None:
        """Work on a conversation if there is room for its process; a failure holds up no other one."""
        if not self._runner.room:
            return
        try:
            await work(conversation)
        except StoreError:
            raise
        except Exception as error:
            trace = None if isinstance(error, HoldfastError) else error
            logger.error("conversation %d could not be maintained: %s", conversation.id, error, exc_info=trace)

    async def compact(self, conversation: Conversation, key: CallKey | None = None) -> Compaction:
        """Have the agent compact its conversation; return the tokens before and after, as it reported them."""

        def begin(tx: Tx) -> None:
            require_unanswered(tx, key)
            conversations.set_status(tx, conversation.id, ConversationStatus.COMPACT_PENDING)

        try:
            async with self._runner.borrowed(conversation) as slot:
                await self._store.write(begin)
                done = await self._compacted(conversation, slot)
        except (AlreadyAnswered, Conflict, StoreError):
            raise
        except Exception:
            # Each try may cost calls of the model, so the next one waits until there is more to compact.
            await self._store.write(lambda tx: conversations.compacted(tx, conversation.id))
            raise

        def write(tx: Tx) -> Compaction:
            conversations.compacted(tx, conversation.id)
            tx.emit("teams.compacted", str(conversation.id), {"before": done.pre_tokens, "after": done.post_tokens})
            return done

        return await self._store.write(first_time(key, write))

    async def _compacted(self, conversation: Conversation, slot: Slot) -> Compaction:
        try:
            async with asyncio.timeout(self._runner.stall_seconds):
                return await slot.session.compact()
        except TimeoutError as error:
            raise AgentStalled(f"The agent did not compact within {self._runner.stall_seconds:.0f} s.") from error
        except (CompactionFailed, PartMissing):
            return await self._sum_up(conversation, slot)

    async def _sum_up(self, conversation: Conversation, slot: Slot) -> Compaction:
        """Have the agent summarise the conversation, and continue it in a new session; used if compaction failed."""
        try:
            turn = await self._runner.turn(slot, SUMMARISE)
            if turn.is_error or not turn.text.strip():
                raise AgentFailed("The conversation could be neither compacted nor summarised.")
            session_id = random_id()
            await self._store.write(
                lambda tx: conversations.begin_afresh(tx, conversation.id, session_id, turn.text[:20_000])
            )
            return Compaction(turn.context_tokens, None)
        finally:
            await slot.session.close()  # which has the pool discard it

    async def warm_up(self) -> None:
        """Open the processes of the most used conversations; no model is called."""

        async def open_process(conversation: Conversation) -> None:
            async with self._runner.borrowed(conversation):
                pass

        busiest = await self._store.read(
            lambda tx: conversations.busiest(
                tx, self._runner.name, self._runner.teams, self._runner.config.settings.warm_up
            )
        )
        for conversation in busiest:
            await self._if_possible(open_process, conversation)
