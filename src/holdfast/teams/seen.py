"""An ask as it is told: what was asked in which conversation, and how it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.store import Tx
from holdfast.teams import queries
from holdfast.teams.model import Ask, AskStatus, Conversation, view
from holdfast.times import iso


@dataclass(frozen=True, slots=True)
class Seen:
    """An ask as it was a moment ago."""

    ask: Ask
    conversation: Conversation | None
    place: int | None
    """Its place in the queue, while it waits."""

    def reply(self) -> dict[str, Any]:
        """As it is told to an agent."""
        ask, status = self.ask, AskStatus(self.ask.status)
        return view(
            {
                "status": status.value if status.done else "pending",
                "askId": ask.id,
                "response": ask.answer,
                "error": ask.error_code,
                "message": ask.error or (None if status.done else said(ask, self.place)),
                "note": ask.note,
                "place": self.place,
                "duration": ask.duration_ms,
                "tokens": view({"input": ask.input_tokens, "output": ask.output_tokens}) or None,
                "costUsd": None if ask.cost_microusd is None else ask.cost_microusd / 1_000_000,
                "conversation": conversation_view(self.conversation) if self.conversation else None,
            }
        )


def look(tx: Tx, ask_id: str) -> Seen | None:
    """The ask with this id, and what belongs to it."""
    found = queries.ask(tx, ask_id)
    if found is None:
        return None
    waiting = found.status == AskStatus.WAITING.value
    conversation = queries.conversation(tx, found.conversation_id)
    return Seen(found, conversation, queries.place(tx, found.row_id) if waiting else None)


def said(found: Ask, place: int | None) -> str:
    """What an ask that is not done waits for."""
    if found.status == AskStatus.RUNNING.value:
        return f"{found.to_team} is working on it; the answer will wait under askId {found.id}."
    return f"Waiting at place {place}; the answer will wait under askId {found.id}."


def conversation_view(conversation: Conversation) -> dict[str, Any]:
    """A conversation as it is told to an agent."""
    return view(
        {
            "id": conversation.id,
            "fromTeam": conversation.from_team or None,
            "toTeam": conversation.to_team,
            "threadId": conversation.thread,
            "sessionId": conversation.session_id,
            "messageCount": conversation.message_count,
            "status": conversation.status,
            "createdAt": iso(conversation.created_at),
            "lastUsedAt": iso(conversation.last_used_at),
        }
    )
