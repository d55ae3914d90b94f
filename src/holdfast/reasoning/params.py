"""The parameters of the reasoning tools, spelled as agents send them."""
# ruff: noqa: N815 - the names are the wire's

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from holdfast.wire.mcp.tools import Params

StatusFilter = Literal["active", "archived", "deleted", "all"]

_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,15}(?:\.0*)?\s*", re.ASCII)


def as_number(value: Any) -> Any:
    """Convert a text or a float without a fraction to the number it stands for; leave anything else."""
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value.split(".")[0])
    return int(value) if isinstance(value, float) and value.is_integer() else value


def as_flag(value: Any) -> Any:
    """Convert the text "true" or "false" to a flag; leave anything else."""
    return {"true": True, "false": False}.get(value.lower(), value) if isinstance(value, str) else value


Number = Annotated[int, BeforeValidator(as_number)]
"""As the sequential-thinking server takes it: agents send "3" where they mean 3."""
Flag = Annotated[bool, BeforeValidator(as_flag)]


class ThoughtParams(Params):
    """What `thought` takes; the names of the sequential-thinking server."""

    thought: str = Field(description="This step")
    nextThoughtNeeded: Flag = Field(description="Whether more follow")
    thoughtNumber: Number | None = Field(None, description="Counted for you")
    totalThoughts: Number | None = Field(None, description="Your estimate")
    isRevision: Flag | None = Field(None, description="Revises earlier thinking")
    revisesThought: Number | None = Field(None, description="Which thought")
    branchFromThought: Number | None = Field(None, description="Where a new branch leaves")
    branchId: str | None = Field(None, description="Branch name")
    needsMoreThoughts: Flag | None = Field(None, description="More than estimated")
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
    limit: Number | None = Field(None, description="How many")
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
        description="get: the structure, or thoughts from-to; tag replaces all; pin: the project's default; delete:"
        " restorable for 30 days"
    )
    sessionId: str | None = Field(None, description="Default: the one you are on")
    query: str | None = Field(None, description="search: words")
    scope: Literal["project", "all"] | None = Field(None, description="search: where")
    from_: Number | None = Field(None, alias="from", description="get: first thought")
    to: Number | None = Field(None, description="get: last thought")
    format: Literal["markdown", "json", "mermaid"] | None = Field(None, description="export")
    title: str | None = Field(None, description="rename: the new one")
    tags: list[str] | None = Field(None, description="tag, list")
    linkTo: str | None = Field(None, description="link: the other session")
    mcpRootUri: str | None = Field(None, description="link: one more root")
    confirm: str | None = Field(None, description="delete: the exact sessionId")
    status: StatusFilter | None = Field(None, description="list")
    limit: Number | None = Field(None, description="How many")
    cursor: str | None = Field(None, description="The last nextCursor")
