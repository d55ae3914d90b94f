"""The parameters of the reasoning tools, spelled as agents send them."""
# ruff: noqa: N815 - the names are the wire's

from __future__ import annotations

from typing import Literal

from pydantic import Field

from holdfast.wire.tools import Params

StatusFilter = Literal["active", "archived", "deleted", "all"]


class ThoughtParams(Params):
    """What `thought` takes; the names of the sequential-thinking server."""

    thought: str = Field(description="This step")
    nextThoughtNeeded: bool = Field(description="Whether more follow")
    thoughtNumber: int | None = Field(None, description="Counted for you")
    totalThoughts: int | None = Field(None, description="Your estimate")
    isRevision: bool | None = Field(None, description="With revisesThought")
    revisesThought: int | None = Field(None, description="Which thought")
    branchFromThought: int | None = Field(None, description="Where it begins")
    branchId: str | None = Field(None, description="A branch; new: with branchFromThought")
    needsMoreThoughts: bool | None = Field(None, description="More than estimated")
    sessionId: str | None = Field(None, description="Only to join a given session")


class InitParams(Params):
    """What `init` takes."""

    operation: Literal["get_state", "list_roots", "bind_root", "start_new", "load_context", "list_sessions"] = Field(
        description="load_context: what was thought before; start_new: another session"
    )
    sessionId: str | None = Field(None, description="load_context: a given session")
    mcpRootUri: str | None = Field(None, description="The project: file:///…")
    title: str | None = Field(None, description="start_new")
    tags: list[str] | None = Field(None, description="start_new, list_sessions")
    domain: str | None = Field(None, description="start_new: the field")
    status: StatusFilter | None = Field(None, description="list_sessions")
    limit: int | None = Field(None, description="How many")
    cursor: str | None = Field(None, description="The last nextCursor")


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
    ] = Field(
        description="get: the structure, or thoughts from-to; tag replaces all; pin: load_context returns it; delete:"
        " restorable for 30 days"
    )
    sessionId: str | None = Field(None, description="Default: the one you are on")
    query: str | None = Field(None, description="search: words")
    scope: Literal["project", "all"] | None = Field(None, description="search: where")
    from_: int | None = Field(None, alias="from", description="get: first thought")
    to: int | None = Field(None, description="get: last thought")
    format: Literal["markdown", "json", "mermaid"] | None = Field(None, description="export")
    title: str | None = Field(None, description="rename: the new one")
    tags: list[str] | None = Field(None, description="tag, list")
    linkTo: str | None = Field(None, description="link: the other session")
    confirm: str | None = Field(None, description="delete: the exact sessionId")
    status: StatusFilter | None = Field(None, description="list")
    limit: int | None = Field(None, description="How many")
    cursor: str | None = Field(None, description="The last nextCursor")
