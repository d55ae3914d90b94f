"""The bridge's queue of a project: the task its agent was on, and what waits for it."""

from __future__ import annotations

from holdfast.bridge.model import Priority, Task
from holdfast.bridge.service import Bridge, Glance
from holdfast.briefing.model import Item, Rank
from holdfast.briefing.sources import Place, Source
from holdfast.quoting import quoted

TEXT = 160
MOST_SENDERS = 4


def inbox(bridge: Bridge) -> Source:
    """The task, and the messages by sender and urgency."""

    async def tell(place: Place) -> list[Item]:
        target = bridge.at(place.root)
        if target is None:
            return []
        found = await bridge.glance(target)
        return [*_task(found.task), *_messages(target, found)]

    return Source(frozenset({"task", "messages"}), tell)


def _task(task: Task | None) -> list[Item]:
    if task is None:
        return []
    text = f"Task: {quoted(task.current_task, TEXT)}."
    if task.last_completed_step:
        text += f" Last completed step: {quoted(task.last_completed_step, TEXT)}."
    if task.pending_messages:
        text += f" Pending: {quoted(', '.join(task.pending_messages), TEXT)}."
    if task.decision is not None:
        text += f" The owner decided: {task.decision}."
    return [Item("task", Rank.TASK, text, "queue_status")]


def _messages(target: str, found: Glance) -> list[Item]:
    if found.following is None:
        return []
    by = ", ".join(f"{quoted(sender, 40)} {count}" for sender, count in list(found.waiting.items())[:MOST_SENDERS])
    text = f"Messages waiting for {target}: {sum(found.waiting.values())} (from {by})."
    priority = Priority(found.following.priority)
    if priority is Priority.NORMAL:
        return [Item("messages", Rank.NEXT, text, "take_message")]
    whole = f"{text} {priority.word.upper()}: {quoted(found.following.text, TEXT)}."
    return [Item("messages", Rank.BLOCKED, whole, "take_message", shorter=text)]
