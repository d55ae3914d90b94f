"""What briefings are made of: each capability tells what an agent in a project needs to know."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from enum import IntEnum

from holdfast.identity.project import Root
from holdfast.lazy_dataclass import dataclass


class Rank(IntEnum):
    """The order of items: what an agent needs most comes first, and is the last to be left out."""

    TASK = 0
    """What was being done, what was asked last."""
    BLOCKED = 10
    """What blocks the work: a gate, a STOP, an urgent message."""
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
    """How the earlier session itself is continued."""


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
    """What is said instead if the text does not fit; None if it is left out then."""
    standing: bool = False
    """Whether it is about the project as it always is, and not about earlier work."""

    @property
    def line(self) -> str:
        """The line of the briefing."""
        return f"- {self.text}" + (f" (more: {self.more})" if self.more else "")


@dataclass(frozen=True, slots=True)
class Audience:
    """Who is briefed, and in which project."""

    root: Root
    session_id: str | None
    """The agent's own session, if it is known."""
    caller: str | None = None
    """The identity of a caller that may have no such session."""

    @property
    def identity(self) -> str | None:
        """The agent as a caller."""
        return self.caller or (f"agent:{self.session_id}" if self.session_id else None)


@dataclass(frozen=True, slots=True)
class Covered:
    """The kinds of items that other hooks tell the agent at the same time, so that the briefing need not."""

    known: frozenset[str] = frozenset()
    pending: Callable[[], Awaitable[set[str]]] | None = None
    """Returns those that are known a little later."""

    async def kinds(self) -> set[str]:
        """Return all of them."""
        return set(self.known) | (await self.pending() if self.pending is not None else set())

    def and_known(self, *kinds: str) -> Covered:
        """Return them with these added."""
        return replace(self, known=self.known.union(kinds))


@dataclass(frozen=True, slots=True)
class Source:
    """What one capability tells."""

    kinds: frozenset[str]
    """The kinds of its items."""
    tell: Callable[[Audience], Awaitable[list[Item]]]
    """Returns the items."""
    order: int = 0
    """Its place among equally important sources; the smallest comes first."""
