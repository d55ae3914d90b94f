"""The protocol over REST: runs, and a validation that other tools can ask for."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from holdfast.connections.keys import Scope
from holdfast.protocol.service import Protocols
from holdfast.wire.rest import Answer, Asked, Given, Reply, RestRoute, Told
from holdfast.wire.rest_fields import Limit

BASE = "/api/protocol"

Directory = Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^/", description="an absolute path")]


class RunsTold(Told):
    """Runs, the newest first."""

    runs: list[dict[str, Any]]


class ValidationTold(Told):
    """What every gate of a run says."""

    status: str
    gates: list[dict[str, Any]]
    message: str
    session_id: str | None = None


class RunsPage(Given):
    """Which runs."""

    limit: Limit = 50
    project: Annotated[Directory | None, Field(description="a directory of the project")] = None


class ValidationBody(Given):
    """Which worktree, and for what."""

    project: Directory
    pre_commit: bool = False


def routes(protocols: Protocols) -> list[RestRoute]:
    """The routes of the protocol."""

    async def runs(asked: Asked) -> Reply:
        query: RunsPage = asked.query
        return Reply({"runs": await protocols.runs(query.project, query.limit)})

    async def validate(asked: Asked) -> Reply:
        body: ValidationBody = asked.body
        return Reply(await protocols.validation(body.project, before_commit=body.pre_commit))

    found = [
        RestRoute(
            "GET",
            f"{BASE}/runs",
            "protocol_runs",
            "Working sessions, the newest first",
            runs,
            {200: Answer("The runs.", RunsTold)},
            query=RunsPage,
        ),
        RestRoute(
            "POST",
            f"{BASE}/validate",
            "validate_protocol",
            "Check every gate of a worktree's session",
            validate,
            {200: Answer("What the gates say; status is PASS, FAIL or NONE.", ValidationTold)},
            scope=Scope.ADMIN,
            body=ValidationBody,
        ),
    ]
    return [replace(route, tag="protocol") for route in found]
