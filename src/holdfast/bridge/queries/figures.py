"""SQL of figures: what became of messages, by when they were sent. Functions of a transaction."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.bridge.model import Status
from holdfast.store import Tx


def by_step(tx: Tx, begin: int, step_ms: int) -> Mapping[int, Mapping[Status, int]]:
    """Count the messages sent since a time by what became of them, in each step of time in which there was one."""
    rows = tx.all(
        "SELECT (created_at - :begin) / :step AS step, status, count(*) AS times FROM bridge_messages"
        " WHERE created_at >= :since GROUP BY 1, status",
        begin=begin,
        step=step_ms,
        since=begin,
    )
    steps: dict[int, dict[Status, int]] = {}
    for row in rows:
        steps.setdefault(int(row["step"]), {})[Status(row["status"])] = int(row["times"])
    return steps
