"""The bridge on the wire, under the seed's names."""

from __future__ import annotations

from typing import Any, Literal

from holdfast.bridge.model import TTL_MS, Outcome, Priority
from holdfast.bridge.service import Bridge
from holdfast.wire.tools import Call, Offer, Params, Repetition, Tool

TEXT = {"type": "string"}
YES_NO = {"type": "boolean"}
NUMBER = {"type": "integer"}


class SendParams(Params):
    """What `send_message` takes."""

    target: str
    message: str
    id: str | None = None
    priority: Literal["normal", "urgent", "stop"] | None = None
    ttl_seconds: int | None = None
    reply_to: str | None = None


class PullParams(Params):
    """What `pull_updates` takes."""

    target: str
    since: str | None = None


class StatusParams(Params):
    """What `queue_status` takes."""


class TakeParams(Params):
    """What `take_message` takes."""

    target: str | None = None
    wait_seconds: int | None = None


class FinishParams(Params):
    """What `finish_message` takes."""

    id: str
    outcome: Literal["done", "failed", "later"]
    reply: str | None = None


class TaskParams(Params):
    """What `save_task` takes."""

    current_task: str
    target: str | None = None
    current_task_id: str | None = None
    last_completed_step: str | int | None = None
    pending_messages: list[str] | None = None


def offer(bridge: Bridge) -> Offer:
    """All that the bridge puts on the wire."""
    tools = [_send(bridge), _pull(bridge), _status(bridge), _take(bridge), _finish(bridge), _save(bridge)]
    return Offer(tools=tools, applies=bridge.applies_to)


def _send(bridge: Bridge) -> Tool:
    async def handle(call: Call, params: SendParams) -> dict[str, Any]:
        return await bridge.send(
            params.target,
            params.message,
            message_id=params.id,
            priority=Priority[(params.priority or "normal").upper()],
            sender=bridge.sender(call.caller).label,
            ttl_ms=TTL_MS if params.ttl_seconds is None else params.ttl_seconds * 1000,
            reply_to=params.reply_to,
            key=call.key,
        )

    return Tool(
        name="send_message",
        title="[Bridge] Send a message",
        description=(
            "Send a message to the agent of another project, a target, also while it is busy, restarting or gone: it"
            " waits in the queue. What comes of it: pull_updates. priority urgent or stop goes first. For an answer:"
            " teams_ask."
        ),
        hint="send to the agent",
        params=SendParams,
        output={"queued": YES_NO, "id": TEXT, "target": TEXT, "reason": TEXT},
        handler=handle,
        repetition=Repetition.STORED,
        toolset="bridge",
    )


def _pull(bridge: Bridge) -> Tool:
    async def handle(call: Call, params: PullParams) -> dict[str, Any]:
        return await bridge.pull(params.target, params.since, sender=bridge.sender(call.caller))

    return Tool(
        name="pull_updates",
        title="[Bridge] Updates of a target",
        description=(
            "What happened at the target: its agent's replies, restarts, task changes. since: the last cursor, or a"
            " time."
        ),
        hint="what did the agent reply",
        params=PullParams,
        output={"updates": {"type": "array"}, "session_restart": {"type": "object"}, "cursor": TEXT},
        handler=handle,
        repetition=Repetition.IDEMPOTENT,
        toolset="bridge",
        read_only=True,
    )


def _status(bridge: Bridge) -> Tool:
    async def handle(call: Call, params: StatusParams) -> dict[str, Any]:
        return await bridge.status(bridge.sender(call.caller))

    return Tool(
        name="queue_status",
        title="[Bridge] All queues",
        description=(
            "Which agents are waiting or busy, how many messages are in the queue: every target's pending, in progress,"
            " current task, session, last seen."
        ),
        params=StatusParams,
        output={"targets": {"type": "object"}},
        handler=handle,
        repetition=Repetition.IDEMPOTENT,
        toolset="bridge",
        read_only=True,
    )


def _take(bridge: Bridge) -> Tool:
    async def handle(call: Call, params: TakeParams) -> dict[str, Any]:
        return await bridge.take(call.caller, params.target, params.wait_seconds or 0, call.key)

    return Tool(
        name="take_message",
        title="[Bridge] Take the next message",
        description=(
            "Take the next message that is waiting for you in the queue (target: default your project's); end it with"
            " finish_message."
        ),
        hint="check for messages",
        params=TakeParams,
        output={"target": TEXT, "id": TEXT, "priority": TEXT, "from": TEXT, "text": TEXT, "waiting": NUMBER},
        handler=handle,
        repetition=Repetition.HANDLE,
        toolset="bridge",
    )


def _finish(bridge: Bridge) -> Tool:
    async def handle(call: Call, params: FinishParams) -> dict[str, Any]:
        return await bridge.finish(call.caller, params.id, Outcome(params.outcome), params.reply, call.key)

    return Tool(
        name="finish_message",
        title="[Bridge] End a message",
        description="Mark the message you took done or failed, with a reply to its sender, or put it back for later.",
        hint="reply to the message",
        params=FinishParams,
        output={"id": TEXT, "status": TEXT, "waiting": NUMBER},
        handler=handle,
        repetition=Repetition.STORED,
        toolset="bridge",
    )


def _save(bridge: Bridge) -> Tool:
    async def handle(call: Call, params: TaskParams) -> dict[str, Any]:
        step = params.last_completed_step
        return await bridge.save_task(
            call.caller,
            params.target,
            params.current_task,
            current_task_id=params.current_task_id,
            last_completed_step=None if step is None else str(step),
            pending_messages=params.pending_messages or [],
            key=call.key,
        )

    return Tool(
        name="save_task",
        title="[Bridge] Save your task",
        description="Save your task and its progress after each step, so that after a restart it can be resumed.",
        params=TaskParams,
        output={"target": TEXT, "saved": YES_NO},
        handler=handle,
        repetition=Repetition.STORED,
        toolset="bridge",
    )
