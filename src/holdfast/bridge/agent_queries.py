"""Who is at work for a target, and on what: incarnations and tasks, each query a function of a transaction."""

from __future__ import annotations

import json

from holdfast.bridge import queries, update_queries
from holdfast.bridge.model import Restart, Task, UpdateKind, restart
from holdfast.store import Tx
from holdfast.store.events import to_json


def incarnation(tx: Tx, target: str) -> str | None:
    """The session that was last seen at work for a target."""
    row = tx.one(
        "SELECT i.session_id FROM bridge_targets t JOIN bridge_incarnations i ON i.row_id = t.incarnation"
        " WHERE t.target = :target",
        target=target,
    )
    return None if row is None else str(row["session_id"])


def last_seen(tx: Tx, target: str) -> int | None:
    """When an agent of the target was last heard of."""
    row = tx.one("SELECT last_seen_at FROM bridge_targets WHERE target = :target", target=target)
    return None if row is None else row["last_seen_at"]


def seen(tx: Tx, target: str, session_id: str, source: str, *, known_is_alive: bool = False) -> Restart | None:
    """An agent of the target was heard of. On a restart, what the dead one had leased comes back."""
    _begin(tx, target)
    known = incarnation(tx, target)
    found = restart(target, known, session_id, known_is_alive=known_is_alive)
    if known is None or found is not None:
        made = tx.one(
            "INSERT INTO bridge_incarnations (target, session_id, previous, source, started_at)"
            " VALUES (:target, :session, :previous, :source, :now) RETURNING row_id",
            target=target,
            session=session_id,
            previous=known,
            source=source,
            now=tx.now(),
        )
        tx.run(
            "UPDATE bridge_targets SET incarnation = :row WHERE target = :target",
            row=made["row_id"] if made else None,
            target=target,
        )
    tx.run("UPDATE bridge_targets SET last_seen_at = :now WHERE target = :target", now=tx.now(), target=target)
    if found is not None:
        for message in queries.leased(tx, target, by=f"session:{found.old}"):
            queries.give_back(tx, message)
        data = {"old": found.old, "new": found.new}
        update_queries.add(tx, target, UpdateKind.SESSION_RESTART, found.content, None, data)
    return found


def task(tx: Tx, target: str) -> Task | None:
    """What the target's agent is, or was, working on."""
    row = tx.one(
        "SELECT target, session_id, current_task, current_task_id, last_completed_step, pending_messages, updated_at,"
        " decision FROM bridge_tasks WHERE target = :target",
        target=target,
    )
    return None if row is None else Task(**{**row, "pending_messages": tuple(json.loads(row["pending_messages"]))})


def save_task(tx: Tx, saved: Task) -> bool:
    """Keep what the agent is working on; False where nothing of it changed."""
    before = task(tx, saved.target)
    same = before is not None and (
        (before.current_task, before.current_task_id, before.last_completed_step, before.pending_messages)
        == (saved.current_task, saved.current_task_id, saved.last_completed_step, saved.pending_messages)
    )
    tx.run(
        "INSERT INTO bridge_tasks (target, session_id, current_task, current_task_id, last_completed_step,"
        " pending_messages, updated_at) VALUES (:target, :session, :task, :task_id, :step, :pending, :now)"
        " ON CONFLICT (target) DO UPDATE SET session_id = excluded.session_id, current_task = excluded.current_task,"
        " current_task_id = excluded.current_task_id, last_completed_step = excluded.last_completed_step,"
        " pending_messages = excluded.pending_messages, updated_at = excluded.updated_at, decision = NULL",
        target=saved.target,
        session=saved.session_id,
        task=saved.current_task,
        task_id=saved.current_task_id,
        step=saved.last_completed_step,
        pending=to_json(saved.pending_messages),
        now=tx.now(),
    )
    if same:
        return False
    step = f" (step {saved.last_completed_step})" if saved.last_completed_step else ""
    data = {"current_task": saved.current_task, "last_completed_step": saved.last_completed_step}
    update_queries.add(tx, saved.target, UpdateKind.TASK, f"{saved.current_task}{step}", saved.current_task_id, data)
    return True


def finish_task(tx: Tx, target: str) -> bool:
    """The target's task is done: nobody is told of it any more; False where there was none."""
    tx.lock(f"bridge:{target}")
    known = task(tx, target)
    if known is None:
        return False
    tx.run("DELETE FROM bridge_tasks WHERE target = :target", target=target)
    content = f"Done: {known.current_task}"
    update_queries.add(tx, target, UpdateKind.TASK, content, known.current_task_id, {"done": True})
    return True


def last_told_of_task(tx: Tx, target: str) -> int:
    """When something was last told of the target's task: saved, or finished."""
    row = tx.one(
        "SELECT coalesce(max(created_at), 0) AS at FROM bridge_updates WHERE target = :target AND kind = 'task'",
        target=target,
    )
    return int(row["at"]) if row else 0


def _begin(tx: Tx, target: str) -> None:
    """The target's row is there, and this transaction alone changes what belongs to it."""
    tx.lock(f"bridge:{target}")
    tx.run("INSERT INTO bridge_targets (target) VALUES (:target) ON CONFLICT (target) DO NOTHING", target=target)
