"""The briefing over REST: where a project's work stands."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from holdfast.briefing.service import Briefings
from holdfast.briefing.views import briefing_view
from holdfast.capability.briefing import Audience
from holdfast.files.in_time import in_time
from holdfast.identity.project import MAX_ROOT, RootSource, locate
from holdfast.wire.http.fields import whole_number
from holdfast.wire.http.rest import Answer, Reply, RequestModel, ResponseModel, RestRequest, RestRoute

Project = Annotated[
    str, Field(pattern=r"^/[^\x00-\x1f]*$", max_length=MAX_ROOT, description="a project's directory, from the root on")
]
Budget = Annotated[
    int, Field(ge=50, le=2_500, description="tokens that the text may cost"), BeforeValidator(whole_number)
]


class BriefingQuery(RequestModel):
    """Which project, and how long the briefing may be."""

    project: Project
    budget: Budget = 1_200


class BriefingResponse(ResponseModel):
    """A briefing's text and parts."""

    project: str
    occasion: str
    recovered: str | None = None
    tokens: int
    items: list[dict[str, Any]]
    text: str


def routes(briefings: Briefings) -> list[RestRoute]:
    async def briefing(request: RestRequest) -> Reply:
        query: BriefingQuery = request.query
        root = await in_time(locate, query.project, RootSource.ARGUMENT)
        return Reply(briefing_view(await briefings.on_request(Audience(root, None), query.budget)))

    return [
        RestRoute(
            "GET",
            "/api/briefing",
            "briefing",
            "Where a project's work stands: the briefing of an agent that starts there",
            briefing,
            {200: Answer("The text and its parts.", BriefingResponse)},
            query=BriefingQuery,
            tag="briefing",
        )
    ]
