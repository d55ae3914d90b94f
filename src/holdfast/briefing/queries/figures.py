"""SQL of figures: what agents got back, and how long their sessions lived.

A session that was killed and resumed has its whole conversation: it is in the same table, and got nothing back."""
# ruff: noqa: S608 - the SQL is built from constants and whole numbers only

from __future__ import annotations

from collections.abc import Sequence

from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx


@dataclass(frozen=True, slots=True)
class RecoveredThings:
    """How often something was told on the same occasion, in one interval."""

    step: int
    occasion: str
    times: int


def told(tx: Tx, begin: int, step_ms: int) -> list[RecoveredThings]:
    """Return what agents got back since a time."""
    rows = tx.all(
        "SELECT (at - :begin) / :step AS step, occasion, count(*) AS times FROM recoveries"
        " WHERE at >= :since AND occasion <> 'resume' GROUP BY 1, occasion",
        begin=begin,
        step=step_ms,
        since=begin,
    )
    return [RecoveredThings(int(row["step"]), row["occasion"], int(row["times"])) for row in rows]


def taken_up(tx: Tx, since: int) -> tuple[int, int]:
    """Return of how many recoveries since a time the session has a ledger, and in how many it went on after them."""
    # The condition on `last_at` lets SQLite answer from an index, without the ledgers' contents.
    row = tx.one(
        "SELECT count(*) AS known, coalesce(sum(CASE WHEN l.last_at > r.at THEN 1 ELSE 0 END), 0) AS went_on"
        " FROM recoveries r JOIN ledgers l ON l.session_id = r.session_id AND l.last_at >= 0 WHERE r.at >= :since"
        " AND r.occasion <> 'resume'",
        since=since,
    )
    return (int(row["known"]), int(row["went_on"])) if row else (0, 0)


def lifetimes(tx: Tx, since: int, bounds: Sequence[int]) -> list[int]:
    """Return how many sessions seen since a time lived how long: up to each bound, and longer."""
    cases = " ".join(f"WHEN lived < {int(bound)} THEN {place}" for place, bound in enumerate(bounds))
    counts = [0] * (len(bounds) + 1)
    for row in tx.all(
        f"SELECT CASE {cases} ELSE {len(bounds)} END AS place, count(*) AS n FROM"
        " (SELECT coalesce(a.ended_at, (SELECT l.last_at FROM ledgers l WHERE l.session_id = a.session_id"
        " AND l.last_at >= 0), a.seen_at) - a.started_at AS lived FROM agent_sessions a WHERE a.seen_at >= :since) s"
        " GROUP BY 1",
        since=since,
    ):
        counts[int(row["place"])] = int(row["n"])
    return counts
