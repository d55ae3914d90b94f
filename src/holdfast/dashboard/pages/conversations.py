"""Conversation: what was asked and answered in it, what the agent did for it, and what can be done with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from holdfast.dashboard.amounts import lasting, money, tokens
from holdfast.dashboard.page import Action, Done, Download, Page, PageRequest, Part, Shown, shown
from holdfast.dashboard.pages.teams import caller_of
from holdfast.dashboard.rendering import size
from holdfast.dashboard.rooms import Rooms
from holdfast.dashboard.session_frame import Fact, SessionFrame
from holdfast.dashboard.urls import ProjectLink, conversation_url, project_link
from holdfast.errors import BadInput, HoldfastError, NotFound
from holdfast.identity.project import canonical_uri
from holdfast.teams.model import MAX_TEXT, Conversation, ConversationStatus, is_temporary
from holdfast.teams.results import TeamProcess
from holdfast.text.masking import Words
from holdfast.text.quoting import read_signed

TURNS = 10
"""Turns on a page."""
MOST_STEPS = 60
"""What agents did, on a page."""
PATIENCE_SECONDS = 4.0
"""How long a button waits for something that may take minutes."""

logger = logging.getLogger(__name__)


def parts(rooms: Rooms) -> list[Part]:
    """Return the page, and what can be done with a conversation."""
    teams = rooms.teams
    under_way: set[asyncio.Task[Any]] = set()

    async def found(request: PageRequest) -> Conversation:
        return await teams.overview.conversation(_number(request.path["id"]))

    async def show(request: PageRequest) -> Shown:
        number = _number(request.path["id"])
        page = await teams.overview.transcript(number, _place(request.query), TURNS, MOST_STEPS)
        process = next((one for one in await teams.overview.processes() if one.conversation_id == number), None)
        conversation = page.conversation
        return shown(
            "conversation.html",
            page=page,
            conversation=conversation,
            frame=_frame(conversation, process, _project(rooms, conversation.to_team)),
            is_newest="before" not in request.query,
            is_open=any(not turn.state.done for turn in page.turns),
            archived=conversation.status == ConversationStatus.ARCHIVED.value,
            known=conversation.to_team in teams.targets(),
            asked=lambda text: read_signed(text) or text,
            money=money,
            tokens=tokens,
            lasting=lasting,
            url=conversation_url(number),
        )

    async def whole(request: PageRequest) -> Download:
        ask = await teams.find(request.path["id"])
        text = f"{read_signed(ask.text) or ask.text}\n\n----\n\n{ask.answer or ask.error or ''}\n"
        if not request.sees_secrets:
            text = await asyncio.to_thread(Words(text, None).mask_for, None)
        content = text.encode("utf-8", "backslashreplace")
        return Download(f"ask-{ask.id}.txt", content, "text/plain; charset=utf-8")

    async def ask(request: PageRequest) -> Done:
        one = await found(request)
        await teams.ask(
            caller_of(request),
            one.to_team,
            request.field("question", MAX_TEXT),
            from_team=one.from_team or None,
            thread=None if is_temporary(one.thread) else one.thread,
        )
        return Done(f"{one.to_team} was asked.")

    async def compact(request: PageRequest) -> Done:
        one = await found(request)
        task = asyncio.create_task(teams.compact(one.from_team or None, one.to_team, one.thread))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
        task.add_done_callback(_logged)
        done, _ = await asyncio.wait([task], timeout=PATIENCE_SECONDS)
        if not done:
            return Done("The agent is compacting the conversation. That can take a few minutes.")
        task.result()
        return Done("The conversation was compacted.")

    async def fork(request: PageRequest) -> Done:
        one = await found(request)
        name = request.field("thread", 64).strip() or None
        copy = await teams.fork(one.from_team or None, one.to_team, one.thread, name)
        return Done("Forked. The original stays as it is.", conversation_url(copy.id))

    async def reset(request: PageRequest) -> Done:
        one = await found(request)
        await teams.reset(one.from_team or None, one.to_team, one.thread)
        return Done("Reset: the next ask starts a new session.")

    async def archive(request: PageRequest) -> Done:
        one = await found(request)
        restore = request.field("restore") == "yes"
        await teams.archive(one.from_team or None, one.to_team, one.thread, restore=restore)
        return Done("The conversation is restored." if restore else "The conversation is archived.")

    path = "/teams/conversations/{id}"
    return [
        Page(path, show),
        Page("/teams/asks/{id}/text", whole),
        Action(f"{path}/ask", ask),
        Action(f"{path}/compact", compact),
        Action(f"{path}/fork", fork),
        Action(f"{path}/reset", reset),
        Action(f"{path}/archive", archive),
    ]


def _frame(one: Conversation, process: TeamProcess | None, project: ProjectLink | None) -> SessionFrame:
    since = one.message_count - one.compacted_count
    running = "none"
    if process is not None:
        running = f"{size(process.resident_bytes)}, {'busy' if process.busy else 'idle'}"
    return SessionFrame(
        "Conversation",
        f"{one.from_team or 'outside'} → {one.to_team}",
        project,
        ("archived",) if one.status == ConversationStatus.ARCHIVED.value else (),
        (
            Fact("Thread", "temporary" if is_temporary(one.thread) else one.thread),
            Fact("Messages", f"{one.message_count:,}"),
            *([Fact("Since compaction", f"{since:,}")] if one.compacted_count else []),
            Fact("Started", at=one.created_at),
            Fact("Last used", at=one.last_used_at),
            Fact("Process", running),
        ),
        live="teams.",
    )


def _project(rooms: Rooms, team: str) -> ProjectLink | None:
    known = rooms.teams.targets().get(team)
    return None if known is None else project_link(canonical_uri(str(known.project)), None)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotFound("There is no such conversation.", recovery="The page Teams lists them.")
    return int(text)


def _place(query: Mapping[str, str]) -> tuple[int, int] | None:
    if "before" not in query:
        return None
    places = query["before"], query.get("line", "0")
    if not all(one.isascii() and one.isdigit() and len(one) < 19 for one in places):
        raise BadInput("before", "is not a position in the conversation", recovery="Open the conversation again.")
    return int(places[0]), int(places[1])


def _logged(task: asyncio.Task[Any]) -> None:
    """Log a failure that nobody waits for any more."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, HoldfastError):
        logger.error("a conversation could not be compacted", exc_info=error)
