"""What the dashboard shows of teams: pairs, processes, transcripts and figures. No hook and no tool needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from holdfast.agents.registry import AGENTS
from holdfast.agents.transcript_entries import KeptEntry
from holdfast.errors import NotFound
from holdfast.process.measure import measure
from holdfast.store import Store, Tx
from holdfast.teams.model import Ask, AskState, AskStatus, Conversation
from holdfast.teams.queries import conversations as conversation_queries
from holdfast.teams.queries import overview as queries
from holdfast.teams.queries import permissions
from holdfast.teams.results import PairActivity, StepFigures, TeamProcess, TranscriptPage, TurnSteps
from holdfast.teams.runner import Runner
from holdfast.teams.steps import by_ask

MOST_PAIRS = 400
LINES, MOST_LINES = 200, 600
"""Lines of a transcript that are read at a time, and for one page."""
MOST_NOTICES = 20
EVERYTHING = (1 << 62, 1 << 62)
FOREVER_MS = 1 << 50


class Overview:
    """Reads data of all teams for the dashboard."""

    def __init__(self, store: Store, runner: Runner) -> None:
        self._store = store
        self._runner = runner

    async def pairs(self, since: int) -> list[PairActivity]:
        """Return what each pair exchanged since a time, the most active first."""
        return (await self.asked(since, FOREVER_MS, MOST_PAIRS))[1]

    async def asked(self, since: int, step_ms: int, most: int) -> tuple[list[StepFigures], list[PairActivity]]:
        """Return what was asked in each step of time, and by each pair, the most active first."""
        return await self._store.read(lambda tx: queries.asked(tx, since, step_ms, most))

    async def lifetimes(self, since: int, bounds: Sequence[int]) -> list[int]:
        """Return how many conversations used since a time lived how long: up to each bound, and longer."""
        return await self._store.read(lambda tx: queries.lifetimes(tx, since, bounds))

    async def conversations(
        self, pair: tuple[str, str] | None, before: tuple[int, int] | None, limit: int
    ) -> list[Conversation]:
        """Return conversations, of one pair or of all, the last used first; only those after a cursor."""
        return await self._store.read(lambda tx: queries.conversations(tx, pair, before or EVERYTHING, limit))

    async def conversation(self, conversation_id: int) -> Conversation:
        """Return the conversation with this id."""
        return await self._store.read(lambda tx: _existing(tx, conversation_id))

    async def processes(self) -> list[TeamProcess]:
        """Return the agents' processes on this machine."""
        slots = [slot for slot in self._runner.pool.slots if slot.session.alive]
        now = await self._store.read(lambda tx: tx.now())

        def look() -> list[TeamProcess]:
            found = []
            for slot in slots:
                pid = slot.session.pid
                used = measure(pid) if pid is not None else None
                found.append(
                    TeamProcess(
                        slot.team,
                        slot.conversation_id,
                        pid,
                        slot.busy,
                        slot.doing,
                        used.resident_bytes if used is not None else None,
                        now - used.age_ms if used is not None else None,
                    )
                )
            return found

        return await asyncio.to_thread(look)

    async def transcript(
        self, conversation_id: int, before: tuple[int, int] | None, limit: int, most_steps: int
    ) -> TranscriptPage:
        """Return the last turns of a conversation, or those before a cursor, with what the agent did in them."""
        ask_row, line = before or (1 << 62, 0)

        def read(tx: Tx) -> tuple[Conversation, list[Ask]]:
            conversation = _existing(tx, conversation_id)
            return conversation, conversation_queries.asks_of(tx, conversation.id, ask_row, limit + 1)

        conversation, newest = await self._store.read(read)
        asks, more = list(reversed(newest[:limit])), len(newest) > limit
        begin = min((ask.started_at or ask.created_at for ask in asks), default=0)
        kept = await self._kept(conversation, line, begin) if asks else []
        steps = by_ask(asks, kept, most_steps)
        end = max((ask.finished_at or 1 << 62 for ask in asks), default=0)
        notices = await self._store.read(lambda tx: queries.notices(tx, conversation.to_team, begin, end, MOST_NOTICES))
        states = await self._store.read(lambda tx: [_state(tx, ask, conversation) for ask in asks])
        earlier = [one.place for one in kept if one.entry.at is not None and one.entry.at < begin]
        next_line = (max(earlier) + 1) if earlier else min((one.place for one in kept), default=line)
        return TranscriptPage(
            conversation,
            tuple(
                TurnSteps(
                    self._runner.seen(state),
                    *steps[state.ask.id],
                    tuple(one for one in notices if one.shown_at is not None and one.shown_at == state.ask.finished_at),
                )
                for state in states
            ),
            (asks[0].row_id, next_line) if more else None,
            tuple(one for one in notices if one.shown_at is None),
        )

    async def _kept(self, conversation: Conversation, line: int, begin: int) -> list[KeptEntry]:
        """Return the stored part of the agent's transcript since a time, the latest first, up to the read limit."""
        team = self._runner.config.teams.get(conversation.to_team)
        agent = AGENTS.get(team.agent) if team is not None else None
        if agent is None or agent.transcripts is None or not conversation.begun:
            return []
        kept: list[KeptEntry] = []
        while len(kept) < MOST_LINES:
            before = kept[-1].place if kept else line or None
            some = await agent.transcripts.kept(self._store, conversation.session_id, before, LINES)
            kept += some
            times = [one.entry.at for one in some if one.entry.at is not None]
            if len(some) < LINES or (times and min(times) < begin):
                break
        return kept


def _existing(tx: Tx, conversation_id: int) -> Conversation:
    found = conversation_queries.conversation(tx, conversation_id)
    if found is None:
        raise NotFound(f"There is no conversation {conversation_id}.", recovery="The page Teams lists them.")
    return found


def _state(tx: Tx, ask: Ask, conversation: Conversation) -> AskState:
    status = AskStatus(ask.status)
    return AskState(
        ask,
        conversation,
        conversation_queries.place(tx, ask.row_id) if status is AskStatus.WAITING else None,
        approval=permissions.waiting_of(tx, ask.id) if status is AskStatus.RUNNING else None,
    )
