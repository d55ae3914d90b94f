"""The tools of the bridge, under the seed's names."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from holdfast.bridge import views
from holdfast.bridge.model import TTL_MS, Outcome, Priority, TaskReport
from holdfast.bridge.queue_changes import QueueChanges
from holdfast.bridge.service import Bridge
from holdfast.errors import BadInput
from holdfast.wire.mcp.tools import Call, Offer, Params, Repetition, Tool

CANCELLED = "cancelled"


class SendParams(Params):
    """What `send_message` takes."""

    target: str = Field(description="Its name")
    message: str = Field(description="The text")
    id: str | None = Field(None, description="Your own id, so that it is queued once")
    priority: Literal["normal", "urgent", "stop"] | None = Field(None, description="urgent and stop go first")
    ttl_seconds: int | None = Field(None, description="Default a week")
    reply_to: str | None = Field(None, description="Id of the message it answers")
    replaces: str | None = Field(None, description="Id of your waiting message whose text this replaces")


class PullParams(Params):
    """What `pull_updates` takes."""

    target: str = Field(description="Its name")
    since: str | None = Field(None, description="The last cursor, or a time")


class StatusParams(Params):
    """What `queue_status` takes."""


class TakeParams(Params):
    """What `take_message` takes."""

    target: str | None = Field(None, description="Default: your project's")
    wait_seconds: int | None = Field(None, description="0 to 300")


class FinishParams(Params):
    """What `finish_message` takes."""

    id: str = Field(description="Of the message")
    outcome: Literal["done", "failed", "later", "cancelled"] = Field(
        description="later puts it back; cancelled takes back what you sent, while it waits"
    )
    reply: str | None = Field(None, description="What its sender gets")


class TaskParams(Params):
    """What `save_task` takes."""

    current_task: str | None = Field(None, description="What you work on")
    last_completed_step: str | int | None = Field(None, description="A number or words")
    done: bool | None = Field(None, description="True: it is finished")
    current_task_id: str | None = Field(None, description="Of the message it came with")
    pending_messages: list[str] | None = Field(None, description="Ids still to see to")
    target: str | None = Field(None, description="Default: your project's")


def offer(bridge: Bridge, changes: QueueChanges) -> Offer:
    tools = [_send(bridge, changes), _pull(bridge), _status(bridge), _take(bridge), _finish(bridge, changes)]
    return Offer(tools=tools, order=70, applies=bridge.applies_to)


def offer_task(bridge: Bridge) -> Offer:
    """Offer `save_task`, which every agent uses in any project."""
    return Offer(tools=[_save(bridge)], order=30)


def _send(bridge: Bridge, changes: QueueChanges) -> Tool:
    async def handle(call: Call, params: SendParams) -> dict[str, Any]:
        priority = None if params.priority is None else Priority[params.priority.upper()]
        sender = bridge.sender(call.caller)
        if params.replaces is not None:
            if params.id is not None:
                raise BadInput("id", "must be left out: the message keeps the id that replaces names")
            edited = changes.edit(params.target, params.replaces, params.message, priority, sender, call.key)
            return await call.reply(edited, views.sent_view)
        sent = bridge.send(
            params.target,
            params.message,
            message_id=params.id,
            priority=Priority.NORMAL if priority is None else priority,
            sender=sender.label,
            ttl_ms=TTL_MS if params.ttl_seconds is None else params.ttl_seconds * 1000,
            reply_to=params.reply_to,
            key=call.key,
        )
        return await call.reply(sent, views.sent_view)

    return Tool(
        name="send_message",
        title="[Bridge] Send a message",
        description=(
            "Send a message to the agent of another project, a target, also while it is busy, restarting or gone: it"
            " waits in the queue. What comes of it: pull_updates. For an answer: teams_ask."
        ),
        hint="send to the agent",
        params=SendParams,
        handler=handle,
        repetition=Repetition.STORED,
        toolset="bridge",
    )


def _pull(bridge: Bridge) -> Tool:
    async def handle(call: Call, params: PullParams) -> dict[str, Any]:
        sender = bridge.sender(call.caller)
        return views.pulled_view(await bridge.pull(params.target, params.since, sender=sender))

    return Tool(
        name="pull_updates",
        title="[Bridge] Updates of a target",
        description=("What happened at the target: its agent's replies, restarts, task changes."),
        hint="what did the agent reply",
        params=PullParams,
        handler=handle,
        repetition=Repetition.IDEMPOTENT,
        toolset="bridge",
        read_only=True,
    )


def _status(bridge: Bridge) -> Tool:
    async def handle(call: Call, params: StatusParams) -> dict[str, Any]:
        return views.status_view(await bridge.status(bridge.sender(call.caller)))

    return Tool(
        name="queue_status",
        title="[Bridge] All queues",
        description=(
            "Which agents are waiting or busy, how many messages are in the queue: every target's pending, in progress,"
            " current task, session, last seen."
        ),
        params=StatusParams,
        handler=handle,
        repetition=Repetition.IDEMPOTENT,
        toolset="bridge",
        read_only=True,
    )


def _take(bridge: Bridge) -> Tool:
    async def handle(call: Call, params: TakeParams) -> dict[str, Any]:
        return views.taken_view(await bridge.take(call.caller, params.target, params.wait_seconds or 0, call.key))

    return Tool(
        name="take_message",
        title="[Bridge] Take the next message",
        description=("Take the next message that is waiting for you in the queue; end it with finish_message."),
        hint="check for messages",
        params=TakeParams,
        handler=handle,
        repetition=Repetition.HANDLE,
        toolset="bridge",
    )


def _finish(bridge: Bridge, changes: QueueChanges) -> Tool:
    async def handle(call: Call, params: FinishParams) -> dict[str, Any]:
        if params.outcome == CANCELLED:
            finished = changes.cancel(params.id, None, bridge.sender(call.caller), call.key)
        else:
            finished = bridge.finish(call.caller, params.id, Outcome(params.outcome), params.reply, call.key)
        return await call.reply(finished, views.finished_view)

    return Tool(
        name="finish_message",
        title="[Bridge] End a message",
        description="Mark the message you took done or failed, with a reply to its sender, or put it back for later.",
        hint="reply to the message",
        params=FinishParams,
        handler=handle,
        repetition=Repetition.STORED,
        toolset="bridge",
    )


def _save(bridge: Bridge) -> Tool:
    async def handle(call: Call, params: TaskParams) -> dict[str, Any]:
        step = params.last_completed_step
        report = TaskReport(
            params.current_task,
            params.current_task_id,
            None if step is None else str(step),
            tuple(params.pending_messages or ()),
            bool(params.done),
        )
        saved = bridge.save_task(call.caller, params.target, report, call.key)
        return await call.reply(saved, views.task_saved_view)

    return Tool(
        name="save_task",
        title="[Task] Save what you are working on",
        description=(
            "Save your task and its progress: when you begin, after each step, and with done: true when finished. After"
            " a crash, restart or compaction you, or whoever comes next, are told what is open."
        ),
        params=TaskParams,
        handler=handle,
        repetition=Repetition.STORED,
        for_teams=True,
        always_load=True,
    )
