"""REST routes of the protocol: runs, and validation for other tools."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from holdfast.connections.keys import Scope
from holdfast.protocol.service import Protocols
from holdfast.protocol.views import run_view, worktree_view
from holdfast.wire.http.fields import Limit
from holdfast.wire.http.rest import Answer, Reply, RequestModel, ResponseModel, RestRequest, RestRoute

BASE = "/api/protocol"

Directory = Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^/", description="an absolute path")]


class RunsResponse(ResponseModel):
    """Runs, newest first."""

    runs: list[dict[str, Any]]


class ValidationResponse(ResponseModel):
    """The result of every gate of a run."""

    status: str
    gates: list[dict[str, Any]]
    message: str
    session_id: str | None = None


class RunsPage(RequestModel):
    """Filter of the list of runs."""

    limit: Limit = 50
    project: Annotated[Directory | None, Field(description="a directory of the project")] = None


class ValidationBody(RequestModel):
    """The worktree to validate, and whether only for a commit."""

    project: Directory
    pre_commit: bool = False


def routes(protocols: Protocols) -> list[RestRoute]:
    async def runs(request: RestRequest) -> Reply:
        query: RunsPage = request.query
        return Reply({"runs": [run_view(run) for run in await protocols.runs(query.project, query.limit)]})

    async def validate(request: RestRequest) -> Reply:
        body: ValidationBody = request.body
        return Reply(worktree_view(await protocols.validation(body.project, before_commit=body.pre_commit)))

    routes = [
        RestRoute(
            "GET",
            f"{BASE}/runs",
            "protocol_runs",
            "Working sessions, newest first",
            runs,
            {200: Answer("The runs.", RunsResponse)},
            query=RunsPage,
        ),
        RestRoute(
            "POST",
            f"{BASE}/validate",
            "validate_protocol",
            "Check every gate of a worktree's session",
            validate,
            {200: Answer("The gate results; status is PASS, FAIL or NONE.", ValidationResponse)},
            scope=Scope.ADMIN,
            body=ValidationBody,
        ),
    ]
    return [replace(route, tag="protocol") for route in routes]
