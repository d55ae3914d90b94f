"""The capability seam: what one room offers, and where the daemon, the wire, hooks and commands find it.

A room makes its `Capability` in its `capability.py`; `app.py` lists them. Everybody else iterates over that list and
knows no room by name. An agent's first hook waits for every module that is imported before it, so what hooks do without
is behind callables, which import when they are first called.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any

from holdfast.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from holdfast.agents.hook_events import HookAnswer, HookEvent
    from holdfast.capability.briefing import Covered, Source
    from holdfast.store.events import Event
    from holdfast.wire.http.pages import Pages
    from holdfast.wire.http.rest import RestRoute
    from holdfast.wire.http.webhooks import Webhook
    from holdfast.wire.mcp.tools import Offer

Progress = Callable[[float, str], None]
"""How far a command is, from 0 to 1, and what it is doing."""
Step = Callable[[], Awaitable[object]]

HOUR_SECONDS = 3600.0
SETTLE_SECONDS = 15.0
"""How long the callers of an earlier life of this daemon have to come back."""


@dataclass(frozen=True, slots=True)
class Command:
    """What the command line asks of an open store, over the daemon's socket, or directly if no daemon runs."""

    name: str
    run: Callable[[dict[str, Any], Progress], Awaitable[dict[str, Any]]]
    for_agents: bool = False
    """Whether a managed agent's shell may give it, because it only looks. Every other command is its owner's."""


@dataclass(frozen=True, slots=True)
class Loop:
    """Background work that a daemon supervises; `holdfast status` shows it by its name."""

    name: str
    run: Step
    every: float | None = None
    """Seconds between two runs; None for work that runs until it is done."""
    first: float = 0.0
    """Seconds before the first run, and before the first after a failure."""


class Phase(Enum):
    """When a hook's handler is asked."""

    PREPARE = "prepare"
    """Before all others, one after another; it answers nothing."""
    ANSWER = "answer"
    """One after another, by `order`."""
    SUMMARY = "summary"
    """Concurrently with the answers; `HookCall.covered` tells what they cover. What it says comes first."""


@dataclass(frozen=True, slots=True)
class HookCall:
    """One event of an agent, with what its hook client told beside the payload."""

    event: HookEvent
    pid: int | None
    """The agent's process, as its relay's parent."""
    briefing: str | None
    """HOLDFAST_BRIEFING where the agent runs."""
    covered: Covered
    """For a summary: the kinds of items that the answers make superfluous."""


@dataclass(frozen=True, slots=True)
class Hook:
    """A room's answer to agents' hooks, and the kinds of a briefing's items that it makes superfluous."""

    handle: Callable[[HookCall], Awaitable[HookAnswer | None]]
    """What the agent is told; None for nothing."""
    phase: Phase = Phase.ANSWER
    order: int = 0
    """Its place within its phase; the smallest is asked first."""
    covers: frozenset[str] = frozenset()
    """Superfluous if it said something."""
    always_covers: frozenset[str] = frozenset()
    """Superfluous even if it said nothing: then there is nothing to say, or the user wants nothing said."""


async def _nothing() -> None:
    pass


async def _stopped(by: str) -> None:
    pass


async def _healthy() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A room's callbacks in the course of a daemon's life."""

    prepare: Callable[[], object] = lambda: None
    """Import and make what hooks and calls may come to need; called once, off the loop, while hooks are served."""
    start: Step = _nothing
    """Take over from an earlier daemon, before any caller is let in."""
    sweep: Step = _nothing
    """Drop what is past keeping; called every hour."""
    on_events: Callable[[Sequence[Event]], object] = lambda events: None
    """Look at what was committed a moment ago, here or by another daemon."""
    stopping: Callable[[], object] = lambda: None
    """End streams that would never end by themselves, before the port is closed."""
    on_stop: Callable[[str], Awaitable[object]] = _stopped
    """Write down that somebody has stopped the daemon with `holdfast stop`, and who."""
    close: Step = _nothing
    """End what runs outside the daemon."""
    leave: Step = _nothing
    """Write down that this daemon is gone, after everything else has ended."""
    is_busy: Callable[[], bool] = lambda: False
    """Whether work is under way that needs no client."""
    notices: Callable[[], Sequence[str]] = lambda: ()
    """What `holdfast status` must tell users."""
    health: Callable[[], Awaitable[Mapping[str, Any]]] = _healthy
    """Fields of `holdfast status` that are read from the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """All that one room offers. An `Offer` holds tools, resources and prompts."""

    name: str
    service: object = None
    """The room's entry point for other rooms."""
    offers: Callable[[], Sequence[Offer]] = lambda: ()
    routes: Callable[[], Sequence[RestRoute]] = lambda: ()
    webhooks: Callable[[], Sequence[Webhook]] = lambda: ()
    pages: Callable[[], Sequence[Pages]] = lambda: ()
    """What people open in a browser."""
    commands: Callable[[], Sequence[Command]] = lambda: ()
    loops: Callable[[], Sequence[Loop]] = lambda: ()
    hooks: Sequence[Hook] = ()
    briefing_source: Source | None = None
    life: Life = field(default_factory=Life)
