"""Figures of teams: messages, lifetimes, the most active pairs, tokens and cost."""

from __future__ import annotations

from holdfast.store import Tx
from holdfast.teams.results import Figures, PairFigures, TeamFigures

PAIRS = 10


def figures(tx: Tx) -> Figures:
    """All figures at once."""
    whole = tx.one(
        "SELECT count(*) AS conversations, coalesce(sum(message_count), 0) AS messages,"
        " coalesce(sum(last_used_at - created_at), 0) AS lifetime FROM conversations"
    )
    teams = tx.all(
        "SELECT to_team AS team, count(*) AS asks,"
        " sum(CASE WHEN status = 'answered' THEN 1 ELSE 0 END) AS answered,"
        " sum(CASE WHEN status = 'failed' THEN 1 ELSE 0 END) AS failed,"
        " coalesce(sum(input_tokens), 0) AS input_tokens, coalesce(sum(output_tokens), 0) AS output_tokens,"
        " coalesce(sum(cost_microusd), 0) AS cost_microusd, coalesce(sum(duration_ms), 0) AS duration_ms"
        " FROM asks GROUP BY to_team ORDER BY count(*) DESC, to_team"
    )
    pairs = tx.all(
        "SELECT from_team, to_team, sum(message_count) AS messages FROM conversations"
        " GROUP BY from_team, to_team ORDER BY sum(message_count) DESC, from_team, to_team LIMIT :limit",
        limit=PAIRS,
    )
    return Figures(
        conversations=int(whole["conversations"]) if whole else 0,
        messages=int(whole["messages"]) if whole else 0,
        lifetime_ms=int(whole["lifetime"]) if whole else 0,
        teams=tuple(TeamFigures(**{**team, "cost_microusd": int(team["cost_microusd"])}) for team in teams),
        pairs=tuple(PairFigures(pair["from_team"], pair["to_team"], int(pair["messages"])) for pair in pairs),
    )
