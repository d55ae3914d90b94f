"""Teams over REST: who is there, their conversations, and figures."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from holdfast.teams import views
from holdfast.teams.service import Teams
from holdfast.wire.http.fields import Limit
from holdfast.wire.http.rest import Answer, Reply, RequestModel, ResponseModel, RestRequest, RestRoute


class TeamsResponse(ResponseModel):
    """The teams with their processes and queues."""

    teams: list[dict[str, Any]]
    processes: str


class ConversationsResponse(ResponseModel):
    """Conversations, the last used first."""

    conversations: list[dict[str, Any]]


class FiguresResponse(ResponseModel):
    """Messages, lifetimes, pairs, tokens and cost."""

    conversations: int
    messages_per_conversation: float
    mean_lifetime_ms: int
    teams: list[dict[str, Any]]
    pairs: list[dict[str, Any]]


class ConversationsPage(RequestModel):
    """Which conversations."""

    limit: Limit = 50
    team: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$", description="a team's name")] = None


def routes(teams: Teams) -> list[RestRoute]:
    """The routes of teams."""

    async def show(asked: RestRequest) -> Reply:
        return Reply(views.status_view(await teams.status(None), colors=True))

    async def conversations(asked: RestRequest) -> Reply:
        query: ConversationsPage = asked.query
        found = await teams.conversations(query.team, query.limit, asked.sender)
        return Reply(views.conversations_view(found))

    async def figures(asked: RestRequest) -> Reply:
        return Reply(views.figures_view(await teams.figures()))

    return [
        RestRoute(
            "GET",
            "/api/teams",
            "teams",
            "The teams with their processes and queues",
            show,
            {200: Answer("The teams.", TeamsResponse)},
            tag="teams",
        ),
        RestRoute(
            "GET",
            "/api/teams/conversations",
            "team_conversations",
            "Conversations between teams, the last used first",
            conversations,
            {200: Answer("The conversations.", ConversationsResponse)},
            query=ConversationsPage,
            tag="teams",
            for_teams=True,
        ),
        RestRoute(
            "GET",
            "/api/teams/stats",
            "team_figures",
            "Messages, lifetimes, pairs, tokens and cost",
            figures,
            {200: Answer("The figures.", FiguresResponse)},
            tag="teams",
        ),
    ]
