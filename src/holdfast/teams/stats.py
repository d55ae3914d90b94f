"""Figures of teams: messages, lifetimes, the most active pairs, tokens and cost."""

from __future__ import annotations

from typing import Any

from holdfast.store import Tx

PAIRS = 10


def figures(tx: Tx) -> dict[str, Any]:
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
    count = int(whole["conversations"]) if whole else 0
    return {
        "conversations": count,
        "messages_per_conversation": round(int(whole["messages"]) / count, 1) if whole and count else 0,
        "mean_lifetime_ms": int(whole["lifetime"]) // count if whole and count else 0,
        "teams": [{**team, "cost_usd": int(team.pop("cost_microusd")) / 1_000_000} for team in teams],
        "pairs": [
            {"from": pair["from_team"] or None, "to": pair["to_team"], "messages": int(pair["messages"])}
            for pair in pairs
        ],
    }
