"""The parameters of the reasoning tools, spelled as agents send them."""
# ruff: noqa: N815 - the names are the wire's

from __future__ import annotations

from typing import Literal

from pydantic import Field

from holdfast.wire.tools import Params

StatusFilter = Literal["active", "archived", "deleted", "all"]


class ThoughtParams(Params):
    """What `thought` takes; the names of the sequential-thinking server."""

    thought: str
    nextThoughtNeeded: bool
    thoughtNumber: int | None = None
    totalThoughts: int | None = None
    isRevision: bool | None = None
    revisesThought: int | None = None
    branchFromThought: int | None = None
    branchId: str | None = None
    needsMoreThoughts: bool | None = None
    sessionId: str | None = Field(None, description="Only to join a given session")


class InitParams(Params):
    """What `init` takes."""

    operation: Literal["get_state", "list_roots", "bind_root", "start_new", "load_context", "list_sessions"]
    sessionId: str | None = None
    mcpRootUri: str | None = None
    title: str | None = None
    tags: list[str] | None = None
    domain: str | None = None
    status: StatusFilter | None = None
    limit: int | None = None
    cursor: str | None = None


class SessionParams(Params):
    """What `session` takes."""

    operation: Literal[
        "list",
        "get",
        "search",
        "export",
        "rename",
        "tag",
        "pin",
        "unpin",
        "archive",
        "restore",
        "link",
        "delete",
        "analyze",
    ]
    sessionId: str | None = Field(None, description="Default: the one you are on")
    query: str | None = None
    scope: Literal["project", "all"] | None = None
    from_: int | None = Field(None, alias="from")
    to: int | None = None
    format: Literal["markdown", "json", "mermaid"] | None = None
    title: str | None = None
    tags: list[str] | None = None
    linkTo: str | None = None
    confirm: str | None = Field(None, description="delete: the exact sessionId")
    status: StatusFilter | None = None
    limit: int | None = None
    cursor: str | None = None
