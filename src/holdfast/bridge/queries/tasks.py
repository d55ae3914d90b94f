"""Tasks: one per target, or one per agent in a project without a target.

A project's task belongs to the caller that saved it. Once that caller is gone, another one that saves or finishes the
same task takes it over. A finished task has no row, so it is never listed as open. Each query is a function of a
transaction.
"""
# ruff: noqa: S608 - the texts are put together from constants alone

from __future__ import annotations

import json

from holdfast.bridge.model import OpenTask, ProjectTask, Task, UpdateKind, Work, decision_text, is_same_work
from holdfast.bridge.queries import queue, updates
from holdfast.connections.queries.connections import is_connected
from holdfast.identity.project import Root
from holdfast.store import Row, Tx
from holdfast.store.events import to_json
from holdfast.text.quoting import in_quotes

MOST_OPEN = 20
"""Open tasks stored per root; a new one replaces the oldest."""
MAX_COMPARED = 4_000
"""Characters of a task that are compared with another."""
WORK = "session_id, current_task, current_task_id, last_completed_step, pending_messages, updated_at"
"""The columns that both kinds of task have."""
WORK_VALUES = ", ".join(f":{name}" for name in WORK.split(", "))
WORK_REPLACED = ", ".join(f"{name} = excluded.{name}" for name in WORK.split(", "))


def of_target(tx: Tx, target: str) -> Task | None:
    row = tx.one(f"SELECT target, {WORK}, decision FROM bridge_tasks WHERE target = :target", target=target)
    return None if row is None else Task(**_with_pending(row))


def save_for_target(tx: Tx, saved: Task) -> bool:
    """Save the target's task; False if nothing changed."""
    before = of_target(tx, saved.target)
    tx.run(
        f"INSERT INTO bridge_tasks (target, {WORK}) VALUES (:target, {WORK_VALUES})"
        f" ON CONFLICT (target) DO UPDATE SET {WORK_REPLACED}, decision = NULL",
        target=saved.target,
        **_work(tx, saved),
    )
    if before is not None and is_same_work(before, saved):
        return False
    step = f" (step {saved.last_completed_step})" if saved.last_completed_step else ""
    updates.add(tx, saved.target, UpdateKind.TASK, f"{saved.current_task}{step}", saved.current_task_id)
    return True


def finish_of_target(tx: Tx, target: str) -> bool:
    """Remove the target's task as done; False if there was none."""
    tx.lock(f"bridge:{target}")
    known = of_target(tx, target)
    if known is None:
        return False
    tx.run("DELETE FROM bridge_tasks WHERE target = :target", target=target)
    updates.add(tx, target, UpdateKind.TASK, f"Done: {known.current_task}", known.current_task_id)
    return True


def last_told_of_target(tx: Tx, target: str) -> int:
    """Return when the target's task was last saved or finished."""
    sql = "SELECT coalesce(max(created_at), 0) AS at FROM bridge_updates WHERE target = :target AND kind = 'task'"
    row = tx.one(sql, target=target)
    return int(row["at"]) if row else 0


def decide(tx: Tx, target: str, decision: str) -> None:
    """Store the owner's decision on a target's task, resume or fresh."""
    tx.run("UPDATE bridge_tasks SET decision = :decision WHERE target = :target", decision=decision, target=target)
    tx.emit("bridge.decided", target, {"decision": decision})


def ask_again(tx: Tx, target: str) -> None:
    """Forget the decision on a target's task after another restart, unless no agent has been told of it yet."""
    task = of_target(tx, target)
    if task is None or task.decision is None:
        return
    if not queue.is_open(tx, target, decision_text(task.decision, task.current_task)):
        tx.run("UPDATE bridge_tasks SET decision = NULL WHERE target = :target", target=target)


def save_for_project(tx: Tx, saved: ProjectTask, key: str | None) -> bool:
    """Save the caller's task; False if nothing changed."""
    tx.lock(f"project-tasks:{key or saved.root}")
    known = _of_project(tx, saved.root, key)
    before = next((one for one in known if (one.root, one.owner) == (saved.root, saved.owner)), None)
    for one in known:
        same = is_same_task(one, saved.current_task, saved.current_task_id)
        if one is not before and same and not is_connected(tx, one.owner):
            _remove(tx, one)
    sql = (
        f"INSERT INTO project_tasks (root, owner, {WORK}, project_key) VALUES (:root, :owner, {WORK_VALUES}, :key)"
        f" ON CONFLICT (root, owner) DO UPDATE SET {WORK_REPLACED}, project_key = excluded.project_key"
    )
    tx.run(sql, root=saved.root, owner=saved.owner, key=key, **_work(tx, saved))
    for one in [one for one in known if one.root == saved.root and one is not before][MOST_OPEN - 1 :]:
        _remove(tx, one)
    if before is not None and is_same_work(before, saved):
        return False
    tx.emit("task.saved", saved.root)
    return True


def finish_in_project(tx: Tx, root: Root, owner: str, current_task: str | None, task_id: str | None) -> bool:
    """End the named task unless another agent is at work on it, else the caller's own; False if neither exists."""
    tx.lock(f"project-tasks:{root.key or root.uri}")
    known = _around(tx, root)
    named = [one for one in known if current_task is not None and is_same_task(one, current_task, task_id)]
    free = [one for one in named if one.owner == owner or not is_connected(tx, one.owner)]
    ended = free or [one for one in known if (one.root, one.owner) == (root.uri, owner)]
    for one in ended:
        _remove(tx, one)
        tx.emit("task.finished", one.root)
    return bool(ended)


def open_in_project(tx: Tx, root: Root, limit: int) -> list[OpenTask]:
    """The open tasks of a project, those of this root first, then the newest."""
    known = _around(tx, root)
    known.sort(key=lambda one: one.root != root.uri)
    return [OpenTask(one, is_connected(tx, one.owner)) for one in known[:limit]]


def forget_project(tx: Tx, root: Root) -> int:
    """Remove a project's tasks; returns how many there were."""
    return tx.run("DELETE FROM project_tasks WHERE root = :root OR project_key = :key", root=root.uri, key=root.key)


def is_same_task(known: ProjectTask, current_task: str, task_id: str | None) -> bool:
    """Whether a caller means a known task, by its id or by its words as a briefing shows them."""
    if task_id is not None and known.current_task_id is not None:
        return task_id == known.current_task_id
    whole, said = (in_quotes(text, MAX_COMPARED)[1:-1] for text in (known.current_task, current_task))
    return whole == said or (said.endswith("…") and whole.startswith(said[:-1]))


def _around(tx: Tx, root: Root) -> list[ProjectTask]:
    """Tasks of a root's project and of the checkout around it, newest first."""
    known = _of_project(tx, root.uri, root.key)
    return known if root.top is None else known + _of_project(tx, root.top.uri, root.top.key)


def _of_project(tx: Tx, root: str, key: str | None) -> list[ProjectTask]:
    rows = tx.all(
        f"SELECT root, owner, {WORK} FROM project_tasks WHERE root = :root OR project_key = :key"
        " ORDER BY updated_at DESC, owner",
        root=root,
        key=key,
    )
    return [ProjectTask(**_with_pending(row)) for row in rows]


def _remove(tx: Tx, task: ProjectTask) -> None:
    tx.run("DELETE FROM project_tasks WHERE root = :root AND owner = :owner", root=task.root, owner=task.owner)


def _work(tx: Tx, task: Work) -> Row:
    """The values of the columns that both kinds of task have, as of now."""
    work = {name: getattr(task, name) for name in WORK.split(", ")}
    return work | {"pending_messages": to_json(task.pending_messages), "updated_at": tx.now()}


def _with_pending(row: Row) -> Row:
    return {**row, "pending_messages": tuple(json.loads(row["pending_messages"]))}
