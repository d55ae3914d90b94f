"""The briefing over REST: where a project's work stands."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from holdfast.briefing.service import Briefings
from holdfast.briefing.views import briefing_view, unfinished_view
from holdfast.capability.briefing import Audience
from holdfast.files.in_time import in_time
from holdfast.identity.project import MAX_ROOT, RootSource, locate
from holdfast.wire.http.fields import Limit, whole_number
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


class UnfinishedQuery(RequestModel):
    """Of which project, and how many sessions at most."""

    project: Project | None = None
    limit: Limit = 50


class Work(ResponseModel):
    """A session with unfinished work."""

    project: str
    agent: str
    session: str
    asked: str
    """The last request, on one line."""
    left: str
    """What is open."""
    cut_off: bool
    last_at: str
    directory: str
    """Where it ran."""
    resume: list[str]
    """The program and its arguments that continue it there."""
    resumable: bool
    """Whether its transcript is on this machine."""


class LookedAt(ResponseModel):
    """How much was looked at."""

    projects: int
    sessions: int


class UnfinishedResponse(ResponseModel):
    """Unfinished work, the newest first."""

    work: list[Work]
    looked_at: LookedAt
    more: int
    """How many more sessions there are."""
    gone: int
    """How many projects were left out because their directory is gone."""
    left_out: int
    """How many projects were not looked at for want of time."""


def routes(briefings: Briefings) -> list[RestRoute]:
    async def briefing(request: RestRequest) -> Reply:
        query: BriefingQuery = request.query
        root = await in_time(locate, query.project, RootSource.ARGUMENT)
        return Reply(briefing_view(await briefings.on_request(Audience(root, None), query.budget)))

    async def unfinished(request: RestRequest) -> Reply:
        query: UnfinishedQuery = request.query
        root = None if query.project is None else await in_time(locate, query.project, RootSource.ARGUMENT)
        return Reply(unfinished_view(await briefings.unfinished(root, query.limit), briefings.config))

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
        ),
        RestRoute(
            "GET",
            "/api/unfinished",
            "unfinished",
            "Unfinished work of all projects on this machine, or of one, the newest first",
            unfinished,
            {200: Answer("The sessions with unfinished work.", UnfinishedResponse)},
            query=UnfinishedQuery,
            tag="briefing",
        ),
    ]
