"""Asks, conversations and teams as JSON, for tools, routes and commands alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from holdfast.agents.registry import AGENTS
from holdfast.teams.model import AskState, AskStatus, Conversation
from holdfast.text.quoting import in_quotes, read_signed
from holdfast.times import iso

if TYPE_CHECKING:
    from holdfast.agents import Compaction, FoundSession
    from holdfast.teams.model import Ask, PermissionRequest
    from holdfast.teams.results import ConversationHistory, Figures, TeamsStatus, TeamStatus
    from holdfast.teams.team import Team

JSON = dict[str, Any]

MAX_FAULT = 500
MAX_HISTORY_TEXT = 500
"""Characters of a question and of its answer in a history."""


def ask_view(state: AskState) -> JSON:
    """An ask with its answer, or what it waits for."""
    ask = state.ask
    return _present(
        {
            "status": AskStatus(ask.status).value if state.done else "pending",
            "askId": ask.id,
            "response": ask.answer,
            "error": ask.error_code,
            "message": ask.error or (None if state.done else state.progress),
            "note": ask.note,
            "place": None if state.why_not else state.place,
            "duration": ask.duration_ms,
            "tokens": _present({"input": ask.input_tokens, "output": ask.output_tokens}) or None,
            "costUsd": None if ask.cost_microusd is None else ask.cost_microusd / 1_000_000,
            "conversation": _conversation(state.conversation) if state.conversation else None,
        }
    )


def notice_view(notice_id: str, to_team: str) -> JSON:
    """A notice that is stored for a team."""
    return {"status": "kept", "noticeId": notice_id, "message": f"{to_team} will see it on its next turn."}


def conversation_view(conversation: Conversation) -> JSON:
    """One conversation."""
    return {"conversation": _conversation(conversation)}


def conversations_view(found: list[Conversation]) -> JSON:
    """Several conversations."""
    return {"conversations": [_conversation(conversation) for conversation in found]}


def fork_view(copy: Conversation, team: Team | None) -> JSON:
    """A copy of a conversation, and the command that continues it in a terminal, if the agent has one."""
    command = AGENTS[team.agent].resume_command if team is not None else None
    terminal = None if command is None else command(copy.session_id, fork=True)
    return _present({**conversation_view(copy), "terminal": terminal})


def compaction_view(done: Compaction) -> JSON:
    """What a compaction did to the size of a conversation."""
    return _present({"status": "compacted", "tokensBefore": done.pre_tokens, "tokensAfter": done.post_tokens})


def history_view(history: ConversationHistory, most: int | None = MAX_HISTORY_TEXT) -> JSON:
    """A conversation with its asks; each text cut to `most` characters, or whole."""
    return {**conversation_view(history.conversation), "asks": [_asked(ask, most) for ask in history.asks]}


def asks_view(states: list[AskState]) -> JSON:
    """Asks with their conversations."""
    return {
        "asks": [
            {
                **_asked(state.ask, MAX_HISTORY_TEXT),
                **(_conversation(state.conversation) if state.conversation else {}),
                "status": state.ask.status,
            }
            for state in states
        ]
    }


def found_view(found: list[tuple[str, FoundSession]]) -> JSON:
    """Sessions that a team could adopt."""
    sessions = [
        _present(
            {
                "team": team,
                "sessionId": session.session_id,
                "title": session.title,
                "modifiedAt": iso(session.modified_at),
            }
        )
        for team, session in found
    ]
    return {"sessions": sessions}


def status_view(status: TeamsStatus, *, colors: bool = False) -> JSON:
    """Teams with their processes and queues; the dashboard shows their colors too."""
    return _present(
        {
            "teams": [_team(one, color=one.team.color if colors else None) for one in status.teams],
            "processes": f"{status.processes} of {status.max_processes}",
            "faults": [in_quotes(str(fault), MAX_FAULT) for fault in status.faults] or None,
        }
    )


def by_reason(teams: Iterable[JSON], member: str) -> dict[str, list[str]]:
    """Return the names of the teams in a status, grouped by the reason in this member."""
    reasons: dict[str, list[str]] = {}
    for team in teams:
        if member in team:
            reasons.setdefault(team[member], []).append(team["team"])
    return reasons


def figures_view(figures: Figures) -> JSON:
    """Messages, lifetimes, pairs, tokens and cost."""
    count = figures.conversations
    return {
        "conversations": count,
        "messages_per_conversation": round(figures.messages / count, 1) if count else 0,
        "mean_lifetime_ms": figures.lifetime_ms // count if count else 0,
        "teams": [
            {
                name: getattr(one, name)
                for name in ("team", "asks", "answered", "failed", "input_tokens", "output_tokens", "duration_ms")
            }
            | {"cost_usd": one.cost_microusd / 1_000_000}
            for one in figures.teams
        ],
        "pairs": [
            {"from": pair.from_team or None, "to": pair.to_team, "messages": pair.messages} for pair in figures.pairs
        ],
    }


def permission_view(request: PermissionRequest) -> JSON:
    """A request that waits for the owner's decision, whole."""
    return {
        "id": request.id,
        "team": request.team,
        "tool": request.tool,
        "input": request.input,
        "created_at": request.created_at,
        "digest": request.digest,
    }


def approval_view(request: PermissionRequest) -> JSON:
    """That a request waits, and since when; its content is for its owner only."""
    return {"id": request.id, "tool": in_quotes(request.tool, MAX_FAULT), "since": iso(request.created_at)}


def _conversation(conversation: Conversation) -> JSON:
    return _present(
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


def _asked(ask: Ask, most: int | None) -> JSON:
    return _present(
        {
            "askId": ask.id,
            "status": ask.status,
            "askedAt": iso(ask.created_at),
            "question": (read_signed(ask.text) or ask.text)[:most],
            "response": ask.answer[:most] if ask.answer else None,
            "error": ask.error_code,
            "message": ask.error,
        }
    )


def _team(status: TeamStatus, color: str | None) -> JSON:
    return _present(
        {
            "team": status.team.name,
            "project": str(status.team.project),
            "description": status.team.description,
            "processes": status.processes,
            "busy": status.busy,
            "waiting": status.waiting,
            "running": status.running,
            "settings": status.settings_off,
            "fault": status.fault,
            "approvals": [approval_view(one) for one in status.approvals] or None,
            "color": color,
        }
    )


def _present(fields: JSON) -> JSON:
    return {name: value for name, value in fields.items() if value is not None}
