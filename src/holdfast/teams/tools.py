"""The tools of teams: asking, notifying, and managing conversations."""
# ruff: noqa: N815 - the names are the wire's

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from holdfast.errors import BadInput
from holdfast.teams import views
from holdfast.teams.service import Teams
from holdfast.wire.mcp.tools import Call, Offer, Params, Repetition, Tool

DEFAULT_TIMEOUT_MS = 30_000
LONGEST_TIMEOUT_MS = 3_600_000


class AskParams(Params):
    """What `teams_ask` takes."""

    team: str = Field(description="Its name")
    question: str = Field(description="The text")
    fromTeam: str | None = Field(None, description="Default: your team")
    timeout: int | None = Field(None, description="ms, default 30000")
    threadId: str | None = Field(None, description="Another conversation with it")
    temporary: bool | None = Field(None, description="A conversation of its own, put away when answered")


class SendParams(Params):
    """What `teams_send_message` takes."""

    toTeam: str = Field(description="Its name")
    message: str = Field(description="The text")
    fromTeam: str | None = Field(None, description="Default: your team")
    waitForResponse: bool | None = Field(None, description="false: return at once")
    timeout: int | None = Field(None, description="ms, default 30000")
    threadId: str | None = Field(None, description="Another conversation with it")
    temporary: bool | None = Field(None, description="A conversation of its own, put away when answered")


class NotifyParams(Params):
    """What `teams_notify` takes."""

    toTeam: str = Field(description="Its name")
    message: str = Field(description="The text")
    fromTeam: str | None = Field(None, description="Default: your team")
    ttlDays: int | None = Field(None, description="Default 30")


class StatusParams(Params):
    """What `teams_status` takes."""

    team: str | None = Field(None, description="Only this one")


class SessionParams(Params):
    """What `teams_session` takes."""

    operation: Literal[
        "result", "wait", "cancel", "history", "compact", "fork", "archive", "restore", "reset", "list"
    ] = Field(description="result, wait, cancel: by askId; the others: the conversation with team")
    askId: str | None = Field(None, description="Of the question")
    team: str | None = Field(None, description="With whom")
    fromTeam: str | None = Field(None, description="Default: your team")
    threadId: str | None = Field(None, description="Which conversation")
    newThreadId: str | None = Field(None, description="fork: its name")
    deleteFiles: bool | None = Field(None, description="archive: the transcript too")
    timeout: int | None = Field(None, description="wait: ms")
    limit: int | None = Field(None, description="How many")


def offer(teams: Teams) -> Offer:
    """Return the tools of teams."""
    tools = [_ask(teams), _send(teams), _notify(teams), _status(teams), _session(teams)]
    return Offer(tools=tools, order=50, applies=teams.applies_to)


async def _asked(
    teams: Teams, call: Call, params: AskParams | SendParams, to_team: str, text: str, *, wait: bool
) -> dict[str, Any]:
    limit = _timeout(params.timeout) if wait else 0
    ask_id = await teams.ask(
        call.caller,
        to_team,
        text,
        from_team=params.fromTeam,
        thread=params.threadId,
        temporary=bool(params.temporary),
        key=call.key,
    )
    return views.ask_view(await teams.wait(ask_id, limit, call.progress, call.caller.managed))


def _ask(teams: Teams) -> Tool:
    async def handle(call: Call, params: AskParams) -> dict[str, Any]:
        return await _asked(teams, call, params, params.team, params.question, wait=True)

    return Tool(
        name="teams_ask",
        title="[Teams] Ask a team",
        description=(
            "Ask another team's agent a question and wait for its answer. The conversation goes on where it was. Not"
            " answered in time: status pending, the answer waits under askId (teams_session)."
        ),
        params=AskParams,
        handler=handle,
        repetition=Repetition.HANDLE,
        toolset="teams",
    )


def _send(teams: Teams) -> Tool:
    async def handle(call: Call, params: SendParams) -> dict[str, Any]:
        wait = params.waitForResponse is not False
        return await _asked(teams, call, params, params.toTeam, params.message, wait=wait)

    return Tool(
        name="teams_send_message",
        title="[Teams] Send a team a message",
        description=("Send another team a message, as teams_ask, or without waiting: the answer waits under askId."),
        params=SendParams,
        handler=handle,
        repetition=Repetition.HANDLE,
        toolset="teams",
    )


def _notify(teams: Teams) -> Tool:
    async def handle(call: Call, params: NotifyParams) -> dict[str, Any]:
        days = 30 if params.ttlDays is None else params.ttlDays
        notice = teams.notify(
            call.caller,
            params.toTeam,
            params.message,
            from_team=params.fromTeam,
            ttl_days=days,
            key=call.key,
        )
        return await call.reply(notice, lambda notice_id: views.notice_view(notice_id, params.toTeam))

    return Tool(
        name="teams_notify",
        title="[Teams] Leave a team a notice",
        description=(
            "Tell another team without waiting for an answer: leave a notice for the team, which it sees with its next"
            " turn; none is run for it. For an answer: teams_ask."
        ),
        params=NotifyParams,
        handler=handle,
        repetition=Repetition.STORED,
        toolset="teams",
    )


def _status(teams: Teams) -> Tool:
    async def handle(call: Call, params: StatusParams) -> dict[str, Any]:
        return views.status_view(await teams.status(params.team, teams.sender(call.caller)))

    return Tool(
        name="teams_status",
        title="[Teams] Who is there and busy",
        description="Which teams there are, which are busy, their queues. Conversations: teams_session list.",
        params=StatusParams,
        handler=handle,
        repetition=Repetition.IDEMPOTENT,
        toolset="teams",
        read_only=True,
    )


def _session(teams: Teams) -> Tool:
    async def handle(call: Call, params: SessionParams) -> dict[str, Any]:
        sender = teams.sender(call.caller)
        if params.operation in ("result", "wait", "cancel"):
            ask_id = await teams.require_own_ask(sender, _given("askId", params.askId))
            if params.operation == "wait":
                limit = _timeout(params.timeout)
                return views.ask_view(await teams.wait(ask_id, limit, call.progress, call.caller.managed))
            found = teams.look(ask_id) if params.operation == "result" else teams.cancel(ask_id)
            return views.ask_view(await found)
        if params.operation == "list":
            return views.conversations_view(await teams.conversations(params.team, _limit(params.limit), sender))
        asker = teams.asker(sender, params.fromTeam)
        match params.operation:
            case "history":
                return views.history_view(await teams.history(asker, *_where(params), _limit(params.limit)))
            case "compact":
                return await call.reply(teams.compact(asker, *_where(params), call.key), views.compaction_view)
            case "fork":
                copy = teams.fork(asker, *_where(params), params.newThreadId, call.key)
                return await call.reply(copy, lambda made: views.fork_view(made, teams.targets().get(made.to_team)))
            case "archive" | "restore":
                if params.deleteFiles and params.operation == "restore":
                    raise BadInput("deleteFiles", "goes with archive alone")
                archived = teams.archive(
                    asker,
                    *_where(params),
                    restore=params.operation == "restore",
                    delete_files=bool(params.deleteFiles),
                    key=call.key,
                )
                return await call.reply(archived, views.conversation_view)
            case _:
                return await call.reply(teams.reset(asker, *_where(params), call.key), views.conversation_view)

    return Tool(
        name="teams_session",
        title="[Teams] Answers and conversations",
        description=(
            "The answer to an earlier question from a team; or list, compact, fork, archive, restore or reset the"
            " conversation with a team, or its history. Thought sessions: session."
        ),
        hint="get the answer to my question",
        params=SessionParams,
        handler=handle,
        repetition={
            "result": Repetition.IDEMPOTENT,
            "wait": Repetition.IDEMPOTENT,
            "cancel": Repetition.IDEMPOTENT,
            "history": Repetition.IDEMPOTENT,
            "compact": Repetition.STORED,
            "fork": Repetition.STORED,
            "archive": Repetition.STORED,
            "restore": Repetition.STORED,
            "reset": Repetition.STORED,
            "list": Repetition.IDEMPOTENT,
        },
        toolset="teams",
    )


def _where(params: SessionParams) -> tuple[str, str | None]:
    return _given("team", params.team), params.threadId


def _given(field: str, value: str | None) -> str:
    if value is None:
        raise BadInput(field, "is required by this operation")
    return value


def _timeout(value: int | None) -> int:
    if value is None:
        return DEFAULT_TIMEOUT_MS
    if not 0 <= value <= LONGEST_TIMEOUT_MS:
        raise BadInput("timeout", f"must be 0 to {LONGEST_TIMEOUT_MS} ms")
    return value


def _limit(value: int | None) -> int:
    if value is None:
        return 20
    if not 1 <= value <= 100:
        raise BadInput("limit", "must be 1 to 100")
    return value
