"""The bridge's results as JSON, for tools, routes and commands alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.bridge.model import Message, Priority, Status, Update, UpdateKind
from holdfast.bridge.wording import delivered
from holdfast.text import clipped
from holdfast.text.masking import ANYBODY, Words
from holdfast.times import iso

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.bridge.chat.service import ChatStatus
    from holdfast.bridge.held_messages import Held
    from holdfast.bridge.queries.owner import ListedMessage
    from holdfast.bridge.results import Finished, Pulled, Sent, Taken, TargetStatus, TaskSaved

JSON = dict[str, Any]

MAX_LISTED_TEXT = 2_000
"""Characters of a message and of its reply in a list."""
MAX_WORKING_ON = 200
PAUSED = "Recording is paused for this project; `holdfast resume-recording` starts it again. Nothing was stored."


def sent_view(sent: Sent) -> JSON:
    if sent.id is None:
        return {"queued": False, "reason": sent.reason}
    return {"queued": True, "id": sent.id, "target": sent.target}


def pulled_view(pulled: Pulled) -> JSON:
    """Show updates, the last restart among them, and the cursor of the next pull."""
    view: JSON = {"updates": [_update_view(update) for update in pulled.updates]}
    restarts = [(update.restart, update.created_at) for update in pulled.updates if update.restart is not None]
    if restarts:
        last, at = restarts[-1]
        view["session_restart"] = {"old": last.old, "new": last.new, "at": iso(at)}
    view["cursor"] = str(pulled.cursor)
    return view


def followed_view(found: Iterable[Update]) -> JSON:
    """Show the updates of several targets, and the cursor of each target that has any."""
    updates = list(found)
    return {
        "updates": [{**_update_view(update), "target": update.target} for update in updates],
        "cursors": {update.target: str(update.seq) for update in updates},
    }


def status_view(found: Iterable[TargetStatus]) -> JSON:
    return {"targets": {one.target: _target_view(one) for one in found}}


def taken_view(taken: Taken) -> JSON:
    if taken.message is None:
        return {"target": taken.target, "message": f"No messages waiting for {taken.target}."}
    return {"target": taken.target, **_message_view(taken.message, taken.waiting)}


def finished_view(finished: Finished) -> JSON:
    view: JSON = {"id": finished.id, "status": finished.status.value}
    return {**view, "repeated": True} if finished.repeated else {**view, "waiting": finished.waiting}


def task_saved_view(saved: TaskSaved) -> JSON:
    if not saved.saved:
        return {"saved": False, "message": PAUSED}
    return _present({"target": saved.target, "project": saved.project, "saved": True, "changed": saved.changed})


def listed_view(message: ListedMessage) -> JSON:
    return _present(
        {
            "id": message.id,
            "target": message.target,
            "status": message.status,
            "priority": Priority(message.priority).word,
            "from": message.sender,
            "source": message.source,
            "text": clipped(message.text, MAX_LISTED_TEXT),
            "attempts": message.attempts,
            "reply": None if message.reply is None else clipped(message.reply, MAX_LISTED_TEXT),
            "reply_to": message.reply_to,
            "created_at": iso(message.created_at),
            "expires_at": iso(message.expires_at) if message.status == Status.PENDING else None,
            "finished_at": None if message.finished_at is None else iso(message.finished_at),
        }
    )


def retried_view(message: ListedMessage) -> JSON:
    return {"id": message.id, "target": message.target, "status": message.status}


def held_view(held: Held) -> JSON:
    listed = [
        {
            "id": message.id,
            "target": message.target,
            "sender": message.sender,
            "priority": message.priority.word,
            "text": message.text,
            "created_at": iso(message.created_at),
        }
        for message in held.messages
    ]
    return {"messages": listed, "more": held.more}


def chat_status_view(status: ChatStatus) -> JSON:
    """Show how the chats are doing; what works is left out."""
    troubles = [
        {"transport": one.transport, "target": one.target, "failure": one.failure} for one in status.undelivered
    ]
    return _present(
        {
            "transports": list(status.transports),
            "troubles": troubles or None,
            "receiving": status.receiving,
            "refused": status.refused or None,
        }
    )


def _message_view(message: Message, waiting: int) -> JSON:
    return _present(
        {
            "id": message.id,
            "priority": Priority(message.priority).word,
            "from": message.sender,
            "text": Words(delivered(message, waiting=waiting), ANYBODY),
            "attempt": message.attempts,
            "waiting": waiting,
            "reply_to": message.reply_to,
        }
    )


def _update_view(update: Update) -> JSON:
    """Show an update in the seed's shape; one that came with an archive names it."""
    view: JSON = {
        "message_id": update.message_id,
        "content": update.content,
        "created_at": iso(update.created_at),
        "type": update.kind,
    }
    if update.question is not None:
        view["question"] = clipped(update.question, MAX_LISTED_TEXT)
    return {**view, "from": str(update.archive)} if update.kind == UpdateKind.ADOPTED else view


def _target_view(one: TargetStatus) -> JSON:
    working_on = None if one.working_on is None else Words(one.working_on, None, _begun)
    return _present(
        {
            "pending": one.pending,
            "in_progress": one.in_progress,
            "current_task": one.task.current_task if one.task else working_on,
            "session_id": one.session_id,
            "last_seen": None if one.last_seen is None else iso(one.last_seen),
            "dead_letters": one.dead_letters or None,
            "held": one.held or None,
        }
    )


def _begun(text: str) -> str:
    return text[:MAX_WORKING_ON]


def _present(fields: JSON) -> JSON:
    return {name: value for name, value in fields.items() if value is not None}
