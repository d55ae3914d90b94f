"""What a capability offers on the wire: tools, resources and prompts, described once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict

from holdfast.caller import Caller
from holdfast.connections.model import Attempt
from holdfast.project import Root
from holdfast.store.calls import CallKey
from holdfast.store.events import Event


class Params(BaseModel):
    """Parameters of a tool: strict types, unknown names refused by name."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


Progress = Callable[[float, str], Awaitable[None]]
"""How far a call is (growing), and what it is doing."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool."""

    caller: Caller
    attempt: Attempt
    """Who calls, as far as the transport tells; for the audit."""
    progress: Progress | None = None
    """Tells the client how a long call is getting on."""
    key: CallKey | None = None
    """What makes a repetition of this call the same call; None where the client gave nothing to tell it by."""


Handler = Callable[[Call, Any], Awaitable[dict[str, Any]]]


class Repetition(Enum):
    """How a call is answered that comes a second time with the same key, because the first answer was lost."""

    STORED = "stored"
    """With the result that was stored in the transaction of the effect."""
    HANDLE = "handle"
    """With a reply that is built again from a stored id; it may show a later state of the same thing."""
    IDEMPOTENT = "idempotent"
    """By running again: state and reply are the same. What only reads, and `load_context`."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as agents see it. The handler returns the structured content: everything the model needs."""

    name: str
    title: str
    description: str
    params: type[Params]
    handler: Handler
    repetition: Repetition | Mapping[str, Repetition]
    """How a repetition is answered; for a tool with operations, each of them."""
    toolset: str = "core"
    for_teams: bool = False
    """Whether a key that is limited to teams may use it; it keeps to them itself."""
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    always_load: bool = False
    hint: str = ""
    """Words agents use for it: Claude Code's tool search counts them double, and the model never reads them."""
    root_argument: str | None = None
    """The parameter that names a root, if the tool has one."""
    meets: bool = True
    """Whether a first call makes a connection."""
    meets_strangers: bool = False
    """Whether it makes one even for a caller that nothing tells from others."""
    rebinds: bool = False
    """Whether it may change who the caller is, or which root it is bound to."""
    hands_out_token: bool = False
    """Whether its reply holds a token that the caller needs; nothing in it was written by anybody else."""
    failed: Callable[[dict[str, Any]], bool] = lambda reply: False
    """Whether a reply that is no error tells of a failure all the same, for the figures."""
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
        """The operations that the parameters accept; none for a tool that does one thing."""
        found = self.params.model_fields.get("operation")
        return get_args(found.annotation) if found is not None else ()

    def repetition_of(self, params: Any) -> Repetition:
        """How a repetition of a call with these parameters is answered."""
        return self.repetition[params.operation] if isinstance(self.repetition, Mapping) else self.repetition


@dataclass(frozen=True, slots=True)
class Page:
    """A page of listed resources: (uri, name, description) of each, and where the next one starts."""

    items: Sequence[tuple[str, str, str]]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Resource:
    """A family of resources under one URI template. Every resource is markdown."""

    template: str
    name: str
    description: str
    read: Callable[[Caller, dict[str, str]], Awaitable[str]]
    """The text of the resource with these template values; raises NotFound."""
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
    """All that one capability puts on the wire."""

    tools: Sequence[Tool] = ()
    applies: Callable[[Root | None], bool] = field(default=lambda root: True)
    """Whether its tools are listed by themselves in a project."""
    resources: Sequence[Resource] = ()
    prompts: Sequence[Prompt] = ()
