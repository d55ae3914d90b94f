"""The SQL behind the dashboard's team pages: figures per pair and period, lifetimes, a conversation's notices."""
# ruff: noqa: S608 - the SQL is built from constants and whole numbers only

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store import Tx
from holdfast.teams.model import Conversation
from holdfast.teams.queries.conversations import CONVERSATION
from holdfast.teams.results import Notice, PairActivity, StepFigures

SUMS = (
    "count(*) AS asks, sum(CASE WHEN status = 'answered' THEN 1 ELSE 0 END) AS answered,"
    " sum(CASE WHEN status = 'failed' THEN 1 ELSE 0 END) AS failed,"
    " coalesce(sum(input_tokens), 0) AS input_tokens, coalesce(sum(output_tokens), 0) AS output_tokens,"
    " coalesce(sum(cost_microusd), 0) AS cost_microusd,"
    " sum(CASE WHEN cost_microusd IS NULL AND started THEN 1 ELSE 0 END) AS unpriced"
)
FIGURES = ("asks", "answered", "failed", "input_tokens", "output_tokens", "cost_microusd", "unpriced")


def _asks(columns: str) -> str:
    """Return the asks since a time, from their index only; asks that never started have no cost."""
    return (
        f"(SELECT {columns}, status, input_tokens, output_tokens, cost_microusd,"
        " status IN ('answered', 'failed') AND duration_ms IS NOT NULL AS started"
        " FROM asks WHERE created_at >= :since) a"
    )


def pairs(tx: Tx, since: int, limit: int) -> list[PairActivity]:
    """Return what each pair exchanged since a time, the most active first."""
    # `+ 0` keeps SQLite from reading all asks in the order of conversations, with their texts.
    added = ", ".join(f"sum({name}) AS {name}" for name in FIGURES)
    rows = tx.all(
        f"SELECT c.from_team, c.to_team, {added}, max(last_at) AS last_at, sum(waiting) AS waiting,"
        " sum(running) AS running, count(*) AS conversations FROM"
        f" (SELECT conversation_id, {SUMS}, max(created_at) AS last_at,"
        " sum(CASE WHEN status = 'waiting' THEN 1 ELSE 0 END) AS waiting,"
        " sum(CASE WHEN status = 'running' THEN 1 ELSE 0 END) AS running"
        f" FROM {_asks('conversation_id + 0 AS conversation_id, created_at')} GROUP BY conversation_id) s"
        " JOIN conversations c ON c.id = s.conversation_id GROUP BY c.from_team, c.to_team"
        " ORDER BY sum(asks) DESC, c.from_team, c.to_team LIMIT :limit",
        since=since,
        limit=limit,
    )
    return [  # sums come as decimals from PostgreSQL
        PairActivity(row.pop("from_team"), row.pop("to_team"), **{name: int(value) for name, value in row.items()})
        for row in rows
    ]


def steps(tx: Tx, begin: int, step_ms: int) -> list[StepFigures]:
    """Return what was asked in each step of time since then; steps without an ask are left out."""
    rows = tx.all(
        f"SELECT (created_at - :begin) / :step AS step, {SUMS} FROM {_asks('created_at')} GROUP BY 1 ORDER BY 1",
        begin=begin,
        step=step_ms,
        since=begin,
    )
    return [StepFigures(**{name: int(value) for name, value in row.items()}) for row in rows]


def lifetimes(tx: Tx, since: int, bounds: Sequence[int]) -> list[int]:
    """Return how many conversations that were used since a time lived how long: up to each bound, and longer."""
    cases = " ".join(f"WHEN lived < {int(bound)} THEN {place}" for place, bound in enumerate(bounds))
    counts = [0] * (len(bounds) + 1)
    for row in tx.all(
        f"SELECT CASE {cases} ELSE {len(bounds)} END AS place, count(*) AS n FROM"
        " (SELECT last_used_at - created_at AS lived FROM conversations WHERE last_used_at >= :since) c GROUP BY 1",
        since=since,
    ):
        counts[int(row["place"])] = int(row["n"])
    return counts


def conversations(tx: Tx, pair: tuple[str, str] | None, before: tuple[int, int], limit: int) -> list[Conversation]:
    """Return conversations, of one pair or of all, the last used first; only those after a cursor."""
    which = "" if pair is None else " AND from_team = :from_team AND to_team = :to_team"
    rows = tx.all(
        f"SELECT {CONVERSATION} FROM conversations WHERE (last_used_at, id) < (:used, :id){which}"
        " ORDER BY last_used_at DESC, id DESC LIMIT :limit",
        used=before[0],
        id=before[1],
        limit=limit,
        **({} if pair is None else {"from_team": pair[0], "to_team": pair[1]}),
    )
    return [Conversation(**row) for row in rows]


def notices(tx: Tx, team: str, begin: int, end: int, limit: int) -> list[Notice]:
    """Return the notices that a team was shown in a period, and those that it will be shown next."""
    rows = tx.all(
        "SELECT from_team, text, created_at, shown_at FROM notices WHERE to_team = :team"
        " AND ((shown_at >= :begin AND shown_at <= :end) OR (shown_at IS NULL AND expires_at > :now))"
        " ORDER BY row_id LIMIT :limit",
        team=team,
        begin=begin,
        end=end,
        now=tx.now(),
        limit=limit,
    )
    return [Notice(**row) for row in rows]
