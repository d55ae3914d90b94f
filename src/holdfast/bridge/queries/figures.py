"""SQL of figures: what became of messages, by when they were sent. Functions of a transaction."""

from __future__ import annotations

from holdfast.bridge.model import Status
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx


@dataclass(frozen=True, slots=True)
class SentMessages:
    """How many messages of one interval are in a state."""

    step: int
    status: Status
    times: int


def sent(tx: Tx, begin: int, step_ms: int) -> list[SentMessages]:
    """Count the messages sent since a time, by interval and by what became of them."""
    rows = tx.all(
        "SELECT (created_at - :begin) / :step AS step, status, count(*) AS times FROM bridge_messages"
        " WHERE created_at >= :since GROUP BY 1, status",
        begin=begin,
        step=step_ms,
        since=begin,
    )
    return [SentMessages(int(row["step"]), Status(row["status"]), int(row["times"])) for row in rows]
