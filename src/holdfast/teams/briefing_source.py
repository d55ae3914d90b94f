"""What other teams asked of this project's team, and what they answered it."""

from __future__ import annotations

from holdfast.capability.briefing import Audience, Item, Rank, Source
from holdfast.teams.model import Exchange
from holdfast.teams.service import Teams
from holdfast.text.quoting import quoted
from holdfast.times import iso

TEXT = 120


def colleagues(teams: Teams) -> Source:
    """The latest exchanges."""

    async def tell(audience: Audience) -> list[Item]:
        return [
            Item("teams", Rank.OTHERS, _told(one), 'teams_session {operation: "list"}')
            for one in await teams.lately(audience.root)
        ]

    return Source(frozenset({"teams"}), tell, order=40)


def _told(exchange: Exchange) -> str:
    asked = quoted(exchange.text, TEXT)
    if exchange.incoming:
        who = exchange.other or "somebody outside"
        return f"{who} asked this team ({exchange.status}, {iso(exchange.at)}): {asked}."
    answer = f" Answer: {quoted(exchange.answer, TEXT)}." if exchange.answer else ""
    return f"This team asked {exchange.other} ({exchange.status}, {iso(exchange.at)}): {asked}.{answer}"
