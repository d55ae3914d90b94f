"""Tasks of a project that is no target's: what each of its agents works on. Each query is a function of a transaction.

A task is the caller's that saved it. Who saves or finishes the same task once that caller is gone has taken it up. A
finished task has no row, so it is never told as open.
"""
# ruff: noqa: S608 - the texts are put together from constants alone

from __future__ import annotations

import json
from dataclasses import dataclass

from holdfast.project import Root
from holdfast.quoting import in_quotes
from holdfast.store import Tx
from holdfast.store.events import to_json

MOST_OPEN = 20
"""Open tasks that are kept of one root; a new one takes the place of the oldest."""
LONGEST = 4_000
"""Characters of a task that are compared with another."""
COLUMNS = "root, owner, session_id, current_task, current_task_id, last_completed_step, pending_messages, updated_at"
STRANGER = "stranger"
"""The owner of what nobody in particular saved: a client that nothing tells from others."""


@dataclass(frozen=True, slots=True)
class ProjectTask:
    """What an agent is working on in a project."""

    root: str
    owner: str
    """The identity of the caller that saved it."""
    session_id: str | None
    current_task: str
    current_task_id: str | None
    last_completed_step: str | None
    pending_messages: tuple[str, ...]
    updated_at: int = 0


@dataclass(frozen=True, slots=True)
class OpenTask:
    """A task that was not finished, as whoever comes next sees it."""

    task: ProjectTask
    at_work: bool
    """Whether the agent that saved it is connected now."""


def save(tx: Tx, saved: ProjectTask, key: str | None) -> bool:
    """Keep what the caller works on; False where nothing of it changed."""
    tx.lock(f"project-tasks:{key or saved.root}")
    known = _of_project(tx, saved.root, key)
    before = next((one for one in known if (one.root, one.owner) == (saved.root, saved.owner)), None)
    for one in known:
        same = is_same_task(one, saved.current_task, saved.current_task_id)
        if one is not before and same and not _is_connected(tx, one.owner):
            _remove(tx, one)
    tx.run(
        f"INSERT INTO project_tasks ({COLUMNS}, project_key) VALUES (:root, :owner, :session, :task, :task_id, :step,"
        " :pending, :now, :key) ON CONFLICT (root, owner) DO UPDATE SET session_id = excluded.session_id,"
        " current_task = excluded.current_task, current_task_id = excluded.current_task_id,"
        " last_completed_step = excluded.last_completed_step, pending_messages = excluded.pending_messages,"
        " updated_at = excluded.updated_at, project_key = excluded.project_key",
        root=saved.root,
        owner=saved.owner,
        session=saved.session_id,
        task=saved.current_task,
        task_id=saved.current_task_id,
        step=saved.last_completed_step,
        pending=to_json(saved.pending_messages),
        now=tx.now(),
        key=key,
    )
    for one in [one for one in known if one.root == saved.root and one is not before][MOST_OPEN - 1 :]:
        _remove(tx, one)
    if before is not None and _content(before) == _content(saved):
        return False
    tx.emit("task.saved", saved.root)
    return True


def finish(tx: Tx, root: Root, owner: str, current_task: str | None, task_id: str | None) -> bool:
    """End the task that is named and that nobody else is at work on, else the caller's own; False where none is."""
    tx.lock(f"project-tasks:{root.key or root.uri}")
    known = _of_project(tx, root.uri, root.key)
    named = [one for one in known if current_task is not None and is_same_task(one, current_task, task_id)]
    free = [one for one in named if one.owner == owner or not _is_connected(tx, one.owner)]
    ended = free or [one for one in known if (one.root, one.owner) == (root.uri, owner)]
    for one in ended:
        _remove(tx, one)
        tx.emit("task.finished", one.root)
    return bool(ended)


def unfinished(tx: Tx, root: Root, limit: int) -> list[OpenTask]:
    """The open tasks of a project, those of this root first, then the newest."""
    known = _of_project(tx, root.uri, root.key)
    known.sort(key=lambda one: one.root != root.uri)
    return [OpenTask(one, _is_connected(tx, one.owner)) for one in known[:limit]]


def forget(tx: Tx, root: Root) -> int:
    """Remove the tasks of a project; how many there were."""
    return tx.run("DELETE FROM project_tasks WHERE root = :root OR project_key = :key", root=root.uri, key=root.key)


def is_same_task(known: ProjectTask, current_task: str, task_id: str | None) -> bool:
    """Whether a caller means a task that is known: by its id, or by its words as a briefing shows them."""
    if task_id is not None and known.current_task_id is not None:
        return task_id == known.current_task_id
    whole, said = (in_quotes(text, LONGEST)[1:-1] for text in (known.current_task, current_task))
    return whole == said or (said.endswith("…") and whole.startswith(said[:-1]))


def _of_project(tx: Tx, root: str, key: str | None) -> list[ProjectTask]:
    rows = tx.all(
        f"SELECT {COLUMNS} FROM project_tasks WHERE root = :root OR project_key = :key ORDER BY updated_at DESC, owner",
        root=root,
        key=key,
    )
    return [ProjectTask(**{**row, "pending_messages": tuple(json.loads(row["pending_messages"]))}) for row in rows]


def _remove(tx: Tx, task: ProjectTask) -> None:
    tx.run("DELETE FROM project_tasks WHERE root = :root AND owner = :owner", root=task.root, owner=task.owner)


def _is_connected(tx: Tx, owner: str) -> bool:
    found = tx.one(
        "SELECT 1 AS known FROM connections c JOIN daemons d ON d.id = c.attached_by"
        " WHERE c.identity = :owner AND d.lease_until > :now",
        owner=owner,
        now=tx.now(),
    )
    return found is not None


def _content(task: ProjectTask) -> tuple[object, ...]:
    return task.current_task, task.current_task_id, task.last_completed_step, task.pending_messages
