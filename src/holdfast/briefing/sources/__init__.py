"""Where a briefing comes from: each capability tells what an agent in a project needs to know of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from holdfast.briefing.model import Item
from holdfast.project import Root


@dataclass(frozen=True, slots=True)
class Place:
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
class Beside:
    """The kinds of items that others tell the agent at the same time, so that a briefing needs not."""

    certainly: frozenset[str] = frozenset()
    perhaps: Callable[[], Awaitable[set[str]]] | None = None
    """Known a little later."""

    async def kinds(self) -> set[str]:
        """All of them."""
        return set(self.certainly) | (await self.perhaps() if self.perhaps is not None else set())

    def and_certainly(self, *kinds: str) -> Beside:
        """These as well."""
        return replace(self, certainly=self.certainly.union(kinds))


@dataclass(frozen=True, slots=True)
class Source:
    """What one capability has to tell."""

    kinds: frozenset[str]
    """Of which kinds its items are."""
    tell: Callable[[Place], Awaitable[list[Item]]]
    """The items; none where there is nothing to tell."""
