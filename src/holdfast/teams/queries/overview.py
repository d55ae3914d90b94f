"""The SQL behind the dashboard's team pages: figures per pair and period, lifetimes, a conversation's notices."""
# ruff: noqa: S608 - the SQL is built from constants and whole numbers only

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store import Tx
from holdfast.teams.model import Conversation
from holdfast.teams.queries.conversations import CONVERSATION
from holdfast.teams.results import Notice, PairActivity, StepFigures

FIGURES = ("asks", "answered", "failed", "input_tokens", "output_tokens", "cost_microusd", "unpriced")
"""Fields of both results, in their order."""
OF_PAIRS = ("last_at", "waiting", "running", "conversations")
ADDED = ", ".join(f"sum({name}) AS {name}" for name in FIGURES)
ASKED = f"""
WITH grouped AS MATERIALIZED (
  SELECT conversation_id, (created_at - :since) / :step AS step, count(*) AS asks,
    sum(CASE WHEN status = 'answered' THEN 1 ELSE 0 END) AS answered,
    sum(CASE WHEN status = 'failed' THEN 1 ELSE 0 END) AS failed,
    coalesce(sum(input_tokens), 0) AS input_tokens, coalesce(sum(output_tokens), 0) AS output_tokens,
    coalesce(sum(cost_microusd), 0) AS cost_microusd,
    sum(CASE WHEN cost_microusd IS NULL AND started THEN 1 ELSE 0 END) AS unpriced,
    max(created_at) AS last_at,
    sum(CASE WHEN status = 'waiting' THEN 1 ELSE 0 END) AS waiting,
    sum(CASE WHEN status = 'running' THEN 1 ELSE 0 END) AS running
  FROM (
    SELECT conversation_id + 0 AS conversation_id, created_at, status, input_tokens, output_tokens, cost_microusd,
      status IN ('answered', 'failed') AND duration_ms IS NOT NULL AS started
    FROM asks WHERE created_at >= :since
  ) a GROUP BY 1, 2
), paired AS (
  SELECT c.from_team, c.to_team, {ADDED}, max(last_at) AS last_at, sum(waiting) AS waiting, sum(running) AS running,
    count(DISTINCT c.id) AS conversations
  FROM grouped JOIN conversations c ON c.id = grouped.conversation_id GROUP BY c.from_team, c.to_team
  ORDER BY sum(asks) DESC, c.from_team, c.to_team LIMIT :most
)
SELECT step, NULL AS from_team, NULL AS to_team, {ADDED}, 0 AS last_at, 0 AS waiting, 0 AS running, 0 AS conversations
FROM grouped GROUP BY step
UNION ALL SELECT NULL, from_team, to_team, {", ".join((*FIGURES, *OF_PAIRS))} FROM paired
"""
"""The asks since a time, from their index only and read once: by step of time, and by pair. Asks that never started
have no cost. `+ 0` keeps SQLite from reading all asks in the order of conversations, with their texts."""


def asked(tx: Tx, since: int, step_ms: int, most: int) -> tuple[list[StepFigures], list[PairActivity]]:
    """Return what was asked in each step of time, without the empty ones, and by each pair, the most active first."""
    steps: list[StepFigures] = []
    pairs: list[PairActivity] = []
    for row in tx.all(ASKED, since=since, step=step_ms, most=most):
        figures = [int(row[name]) for name in FIGURES]  # sums come as decimals from PostgreSQL
        if row["step"] is not None:
            steps.append(StepFigures(int(row["step"]), *figures))
        else:
            of_pair = [int(row[name]) for name in OF_PAIRS]
            pairs.append(PairActivity(row["from_team"], row["to_team"], *figures, *of_pair))
    steps.sort(key=lambda one: one.step)
    pairs.sort(key=lambda one: (-one.asks, one.from_team, one.to_team))
    return steps, pairs


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
