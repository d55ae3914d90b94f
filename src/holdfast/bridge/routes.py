"""The bridge over REST: send, follow, and handle undelivered messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from holdfast.bridge import views
from holdfast.bridge.model import MAX_TEXT, Priority, Status
from holdfast.bridge.queue_changes import QueueChanges
from holdfast.bridge.service import MESSAGE_ID_PATTERN, MESSAGE_ID_RULE, Bridge
from holdfast.connections.keys import Scope
from holdfast.wire.http.fields import Limit
from holdfast.wire.http.rest import Answer, Problem, Reply, RequestModel, ResponseModel, RestRequest, RestRoute

BASE = "/api/bridge"

Target = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$", description="a target's name")]
MessageId = Annotated[str, Field(pattern=MESSAGE_ID_PATTERN, description=MESSAGE_ID_RULE.removeprefix("must be "))]
State = Literal["pending", "leased", "done", "failed", "dead", "expired", "cancelled", "held"]


class QueuedResponse(ResponseModel):
    """Whether the message is queued, and under which id; else why not."""

    queued: bool
    id: str | None = None
    target: str | None = None
    reason: str | None = None


class TargetsResponse(ResponseModel):
    """Every target's queue, task and session."""

    targets: dict[str, dict[str, Any]]


class UpdatesResponse(ResponseModel):
    """What happened at a target, the oldest first."""

    updates: list[dict[str, Any]]
    cursor: str
    session_restart: dict[str, Any] | None = None


class MessagesResponse(ResponseModel):
    """Messages, the newest first."""

    messages: list[dict[str, Any]]


class RetriedResponse(ResponseModel):
    """A message that waits again."""

    id: str
    target: str
    status: str


class SendBody(RequestModel):
    """What is sent to whom."""

    target: Annotated[str, Field(min_length=1, max_length=64)]
    message: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
    id: MessageId | None = None
    priority: Literal["normal", "urgent", "stop"] = "normal"


class UpdatesPage(RequestModel):
    """Whose updates, and since when."""

    target: Target
    since: Annotated[
        str | None, Field(max_length=64, description="the cursor of the answer before, or a time such as …T12:00:00Z")
    ] = None
    limit: Limit = 50


class MessagesPage(RequestModel):
    """Which messages."""

    target: Target | None = None
    status: State | None = None
    limit: Limit = 50


class OneMessage(RequestModel):
    """Which message."""

    message_id: MessageId


class OfTarget(RequestModel):
    """Whose message, if several targets have one with that id."""

    target: Target | None = None


def routes(bridge: Bridge, changes: QueueChanges) -> list[RestRoute]:
    async def send(asked: RestRequest) -> Reply:
        body: SendBody = asked.body
        sent = await bridge.send(
            body.target,
            body.message,
            message_id=body.id,
            priority=Priority[body.priority.upper()],
            sender=asked.sender.label,
            source="rest",
        )
        return Reply(views.sent_view(sent))

    async def targets(asked: RestRequest) -> Reply:
        return Reply(views.status_view(await bridge.status(asked.sender)))

    async def updates(asked: RestRequest) -> Reply:
        query: UpdatesPage = asked.query
        pulled = await bridge.pull(query.target, query.since, query.limit, sender=asked.sender)
        return Reply(views.pulled_view(pulled))

    async def messages(asked: RestRequest) -> Reply:
        query: MessagesPage = asked.query
        status = None if query.status is None else Status(query.status)
        found = await changes.listed(query.target, status, query.limit, asked.sender)
        return Reply({"messages": [views.listed_view(message) for message in found]})

    async def retry(asked: RestRequest) -> Reply:
        retried = await changes.retry(asked.path.message_id, asked.query.target, asked.sender)
        return Reply(views.retried_view(retried))

    found = [
        RestRoute(
            "POST",
            f"{BASE}/messages",
            "send_message",
            "Queue a message for a target",
            send,
            {200: Answer("Whether it is queued, and why not.", QueuedResponse)},
            scope=Scope.ADMIN,
            body=SendBody,
        ),
        RestRoute(
            "GET",
            f"{BASE}/messages",
            "messages",
            "Messages and their status, the newest first",
            messages,
            {200: Answer("The messages.", MessagesResponse)},
            query=MessagesPage,
        ),
        RestRoute(
            "POST",
            f"{BASE}/messages/{{message_id}}/retry",
            "retry_message",
            "Queue a dead, failed or expired message again",
            retry,
            {
                200: Answer("It waits again.", RetriedResponse),
                400: Answer("It waits, is worked on or is done; or several targets have one of that id.", Problem),
                404: Answer("There is no such message.", Problem),
            },
            scope=Scope.ADMIN,
            path_params=OneMessage,
            query=OfTarget,
        ),
        RestRoute(
            "GET",
            f"{BASE}/targets",
            "targets",
            "Every target: what waits, what is worked on, by whom",
            targets,
            {200: Answer("The targets.", TargetsResponse)},
        ),
        RestRoute(
            "GET",
            f"{BASE}/updates",
            "updates",
            "Replies, restarts and task changes of a target, the oldest first",
            updates,
            {200: Answer("The updates.", UpdatesResponse), 404: Answer("There is no such target.", Problem)},
            query=UpdatesPage,
        ),
    ]
    return [replace(route, tag="bridge", for_teams=True) for route in found]
