"""Open questions to the owner of a target: each query a function of a transaction."""

from __future__ import annotations

from holdfast.bridge.model import Task
from holdfast.bridge.queries import tasks
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx


@dataclass(frozen=True, slots=True)
class RestartQuestion:
    """The agent of a target was restarted in the middle of a task: should it resume or start fresh?"""

    target: str
    session_id: str
    """The session that replaced the one with the task."""
    at: int
    task: Task


@dataclass(frozen=True, slots=True)
class IdleQuestion:
    """The agent of a target is idle at its terminal while messages wait: may a copy of it answer?"""

    target: str
    question: str
    waiting: int


def restarts(tx: Tx) -> list[RestartQuestion]:
    """Return restarts without a decision on their task, unless the new session already continued it."""
    rows = tx.all(
        "SELECT t.target, i.session_id, i.started_at FROM bridge_tasks t"
        " JOIN bridge_targets b ON b.target = t.target JOIN bridge_incarnations i ON i.row_id = b.incarnation"
        " WHERE t.decision IS NULL AND i.previous IS NOT NULL AND i.started_at >= t.updated_at"
        " AND (t.session_id IS NULL OR t.session_id <> i.session_id) ORDER BY i.started_at, t.target"
    )
    found = [(row, tasks.of_target(tx, row["target"])) for row in rows]
    return [
        RestartQuestion(row["target"], row["session_id"], row["started_at"], task)
        for row, task in found
        if task is not None
    ]


def idle(tx: Tx) -> list[IdleQuestion]:
    """Return targets whose owner was asked whether a copy may answer."""
    rows = tx.all(
        "SELECT b.target, i.question, (SELECT count(*) FROM bridge_messages m WHERE m.target = b.target"
        " AND m.status = 'pending') AS waiting FROM bridge_targets b"
        " JOIN bridge_incarnations i ON i.row_id = b.incarnation"
        " WHERE i.question IS NOT NULL AND i.decision IS NULL ORDER BY b.target"
    )
    return [IdleQuestion(**row) for row in rows if row["waiting"]]
