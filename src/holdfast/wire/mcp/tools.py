"""Descriptions of what a capability offers over MCP: tools, resources and prompts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict

from holdfast.connections.model import Attempt
from holdfast.identity.caller import Caller
from holdfast.identity.project import Root
from holdfast.lazy_dataclass import dataclass
from holdfast.store.calls import CallKey
from holdfast.store.events import Event

T = TypeVar("T")


class Params(BaseModel):
    """Parameters of a tool: strict types; unknown names are refused by name."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


Progress = Callable[[float, str], Awaitable[None]]
"""Reports how far a call is (increasing), and what it is doing."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool."""

    caller: Caller
    attempt: Attempt
    """The caller as the transport identifies it, for the audit."""
    progress: Progress | None = None
    """Reports the progress of a long call to the client."""
    key: CallKey | None = None
    """Identifies repetitions of this call; None if the client sent nothing to identify it by."""

    async def reply(self, result: Awaitable[T], view: Callable[[T], dict[str, Any]]) -> dict[str, Any]:
        """Return the reply that a view makes of a service's result; the same is stored for a repetition."""
        if self.key is None:
            return view(await result)
        self.key.view = view
        done = await result
        return self.key.reply if self.key.reply is not None else view(done)


Handler = Callable[[Call, Any], Awaitable[dict[str, Any]]]


class Repetition(Enum):
    """How a repeated call with the same key is answered, after the first answer was lost."""

    STORED = "stored"
    """With the result that was stored in the transaction of the effect."""
    HANDLE = "handle"
    """With a reply rebuilt from a stored id; it may show a later state of the same thing."""
    IDEMPOTENT = "idempotent"
    """By running again: state and reply are the same. For read-only calls and `load_context`."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as agents see it. The handler returns the structured content: everything the model needs."""

    name: str
    title: str
    description: str
    params: type[Params]
    handler: Handler
    repetition: Repetition | Mapping[str, Repetition]
    """How a repetition is answered; for a tool with operations, by operation."""
    toolset: str = "core"
    for_teams: bool = False
    """Whether a key that is limited to teams may use it; the tool itself respects the limit."""
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    always_load: bool = False
    hint: str = ""
    """Words agents use for it: Claude Code's tool search counts them double; the model never sees them."""
    root_argument: str | None = None
    """The parameter that names a root, if the tool has one."""
    meets: bool = True
    """Whether a first call creates a connection."""
    meets_strangers: bool = False
    """Whether it creates one even for an anonymous caller."""
    rebinds: bool = False
    """Whether it may change who the caller is, or which root it is bound to."""
    hands_out_token: bool = False
    """Whether its reply contains a token that the caller needs, and no text written by others."""
    failed: Callable[[dict[str, Any]], bool] = lambda reply: False
    """Whether a reply that is not an error reports a failure nevertheless, for the usage figures."""
    for_anonymous: bool = False
    """Listed only for callers that are not recognised without a token."""

    def __post_init__(self) -> None:
        declared = self.repetition if isinstance(self.repetition, Mapping) else {"": self.repetition}
        if {*declared} != {*(self.operations or ("",))}:
            every = ", ".join(self.operations) or "the tool itself"
            raise TypeError(f"{self.name}: declare how a repetition is answered for {every}, and for nothing else")
        if self.read_only and {*declared.values()} != {Repetition.IDEMPOTENT}:
            raise TypeError(f"{self.name}: a tool that only reads is idempotent")

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations that the parameters accept; none for a tool without operations."""
        operation = self.params.model_fields.get("operation")
        return get_args(operation.annotation) if operation is not None else ()

    def repetition_of(self, params: Any) -> Repetition:
        """Return how a repetition of a call with these parameters is answered."""
        return self.repetition[params.operation] if isinstance(self.repetition, Mapping) else self.repetition


@dataclass(frozen=True, slots=True)
class Page:
    """A page of listed resources: (uri, name, description) of each, and the cursor of the next page."""

    items: Sequence[tuple[str, str, str]]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Resource:
    """A family of resources under one URI template. Every resource is markdown."""

    template: str
    name: str
    description: str
    read: Callable[[Caller, dict[str, str]], Awaitable[str]]
    """Returns the text of the resource with these template values; raises NotFound."""
    list: Callable[[Caller, str | None], Awaitable[Page]] | None = None
    complete: Callable[[Caller, str, str, dict[str, str]], Awaitable[Sequence[str]]] | None = None
    """Values for a template variable (name, typed so far, values already given)."""
    changed: Callable[[Event], Sequence[str]] = field(default=lambda event: ())
    """The URIs that an event changes."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt the user can pick."""

    name: str
    title: str
    description: str
    render: Callable[[Caller], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Offer:
    """Everything one capability offers over MCP."""

    tools: Sequence[Tool] = ()
    order: int = 0
    """Its place in the list of tools; the smallest comes first."""
    applies: Callable[[Root | None], bool] = field(default=lambda root: True)
    """Whether its tools are listed automatically in a project."""
    resources: Sequence[Resource] = ()
    prompts: Sequence[Prompt] = ()
