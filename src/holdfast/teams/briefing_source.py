"""The teams that this project's team can ask, what others asked of it, and what they answered it."""

from __future__ import annotations

from holdfast.capability.briefing import Audience, Item, Rank, Source
from holdfast.teams.model import Exchange
from holdfast.teams.service import Teams
from holdfast.teams.team import Team
from holdfast.text.quoting import in_quotes, quoted
from holdfast.times import iso

TEXT = 120
MOST_TEAMS = 12
DESCRIPTION = 60


def colleagues(teams: Teams) -> Source:
    """Whom this team can ask, and the latest exchanges."""

    async def tell(audience: Audience) -> list[Item]:
        exchanges = [
            Item("teams", Rank.OTHERS, _told(one), 'teams_session {operation: "list"}')
            for one in await teams.lately(audience.root)
        ]
        known = teams.colleagues(audience.root)
        return [*exchanges, *([_others(*known)] if known is not None and known[1] else [])]

    return Source(frozenset({"teams"}), tell, order=40)


def _others(own: Team, others: list[Team]) -> Item:
    most, rest = others[:MOST_TEAMS], ", …" if len(others) > MOST_TEAMS else ""
    described = [
        one.name + (f" ({in_quotes(one.description, DESCRIPTION)})" if one.description else "") for one in most
    ]
    begin = f"This project is team {own.name}. It can ask"
    return Item(
        "teams",
        Rank.OTHERS,
        f"{begin} {', '.join(described)}{rest}.",
        "teams_ask, teams_status",
        shorter=f"{begin} {', '.join(one.name for one in most)}{rest}.",
        standing=True,
    )


def _told(exchange: Exchange) -> str:
    asked = quoted(exchange.text, TEXT)
    if exchange.incoming:
        who = exchange.other or "somebody outside"
        return f"{who} asked this team ({exchange.status}, {iso(exchange.at)}): {asked}."
    answer = f" Answer: {quoted(exchange.answer, TEXT)}." if exchange.answer else ""
    return f"This team asked {exchange.other} ({exchange.status}, {iso(exchange.at)}): {asked}.{answer}"
