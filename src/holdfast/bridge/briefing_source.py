"""The tasks that agents of a project saved, and the messages waiting in its queue if it is a target's."""

from __future__ import annotations

from holdfast.bridge.model import OpenTask, Priority, Task, Work
from holdfast.bridge.service import Bridge, Inbox
from holdfast.capability.briefing import Audience, Item, Rank, Source
from holdfast.identity.project import path_of
from holdfast.text.quoting import named, quoted
from holdfast.times import iso

TEXT = 160
MOST_TASKS = 3
MOST_SENDERS = 4


def inbox(bridge: Bridge) -> Source:
    async def tell(audience: Audience) -> list[Item]:
        target = bridge.around(audience.root)
        if target is None:
            return [_open(one, audience) for one in await bridge.open_tasks(audience.root, MOST_TASKS)]
        found = await bridge.inbox(target)
        return [*_task(found.task), *_messages(target, found)]

    return Source(frozenset({"task", "messages"}), tell, order=10)


def _task(task: Task | None) -> list[Item]:
    if task is None:
        return []
    text = f"Task: {_progress(task)}"
    if task.decision is not None:
        text += f" The owner decided: {task.decision}."
    return [Item("task", Rank.TASK, text, "queue_status")]


def _open(one: OpenTask, audience: Audience) -> Item:
    task, own = one.task, one.task.owner == audience.identity
    where = "" if task.root == audience.root.uri else f" in {named(str(path_of(task.root) or task.root), TEXT)}"
    when = iso(task.updated_at)
    text = f"Your task (saved {when}):" if own else f"Open task that an earlier session saved{where} ({when}):"
    if one.at_work and not own:
        text = f"Task of another agent that is at work now{where} ({when}):"
    text += f" {_progress(task)}"
    if own or not one.at_work:
        text += " If it is done: save_task {current_task, done: true}."
    return Item("task", Rank.OTHERS if one.at_work and not own else Rank.TASK, text)


def _progress(task: Work) -> str:
    text = f"{quoted(task.current_task, TEXT)}."
    if task.last_completed_step:
        text += f" Last completed step: {quoted(task.last_completed_step, TEXT)}."
    if task.pending_messages:
        text += f" Pending: {quoted(', '.join(task.pending_messages), TEXT)}."
    return text


def _messages(target: str, found: Inbox) -> list[Item]:
    if found.following is None:
        return []
    by = ", ".join(f"{quoted(sender, 40)} {count}" for sender, count in found.waiting[:MOST_SENDERS])
    text = f"Messages waiting for {target}: {sum(count for _, count in found.waiting)} (from {by})."
    priority = Priority(found.following.priority)
    if priority is Priority.NORMAL:
        return [Item("messages", Rank.NEXT, text, "take_message")]
    whole = f"{text} {priority.word.upper()}: {quoted(found.following.text, TEXT)}."
    return [Item("messages", Rank.BLOCKED, whole, "take_message", shorter=text)]
