"""Where a briefing comes from: each capability tells what an agent in a project needs to know of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from enum import IntEnum

from holdfast.identity.project import Root
from holdfast.lazy_dataclass import dataclass


class Rank(IntEnum):
    """What an agent needs most comes first, and is the last to be left out."""

    TASK = 0
    """What was being done, what was asked last."""
    BLOCKED = 10
    """What stands in the way: a gate, a STOP, an urgent message."""
    NEXT = 20
    """What comes next: the protocol's phase, the task's step, the plan."""
    THOUGHTS = 30
    MODIFIED = 40
    FAILED = 50
    READ = 60
    DECIDED = 70
    OTHERS = 80
    """What other teams asked or answered."""
    WAY_BACK = 5
    """How the conversation itself is taken up again."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that an agent is told."""

    kind: str
    """What it is about: request, task, thoughts, protocol, modified, read, failed, messages, …"""
    rank: int
    text: str
    """One line, or a few; stored text in it is quoted as data."""
    more: str | None = None
    """The tool that gives more."""
    shorter: str | None = None
    """What is said instead where the whole does not fit; None where it is left out then."""

    @property
    def line(self) -> str:
        """As it stands in the briefing."""
        return f"- {self.text}" + (f" (more: {self.more})" if self.more else "")


@dataclass(frozen=True, slots=True)
class Audience:
    """Who is to be told, and where they are."""

    root: Root
    session_id: str | None
    """The agent's own session, where it is known."""
    caller: str | None = None
    """The identity of whoever asks, also without such a session."""

    @property
    def identity(self) -> str | None:
        """The agent as a caller."""
        return self.caller or (f"agent:{self.session_id}" if self.session_id else None)


@dataclass(frozen=True, slots=True)
class Covered:
    """The kinds of items that others tell the agent at the same time, so that a briefing needs not."""

    known: frozenset[str] = frozenset()
    pending: Callable[[], Awaitable[set[str]]] | None = None
    """Known a little later."""

    async def kinds(self) -> set[str]:
        """All of them."""
        return set(self.known) | (await self.pending() if self.pending is not None else set())

    def and_known(self, *kinds: str) -> Covered:
        """These as well."""
        return replace(self, known=self.known.union(kinds))


@dataclass(frozen=True, slots=True)
class Source:
    """What one capability has to tell."""

    kinds: frozenset[str]
    """Of which kinds its items are."""
    tell: Callable[[Audience], Awaitable[list[Item]]]
    """The items; none where there is nothing to tell."""
    order: int = 0
    """Where its items stand among equally important ones; the smallest comes first."""
