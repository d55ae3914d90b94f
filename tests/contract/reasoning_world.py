"""A small world for the tests of reasoning: one store, one daemon, and callers that come and go."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.assembly import make_connections
from tests.contract.conftest import Place
from tests.reasoning_replies import ReasoningReplies

from holdfast.connections.service import Connections
from holdfast.identity.caller import Caller, Era, Transport
from holdfast.identity.project import Root, RootSource
from holdfast.reasoning.model import Draft
from holdfast.reasoning.service import Reasoning
from holdfast.store import Row, Store
from holdfast.store.calls import CallKey

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR

PROJECT = Root("file:///home/dev/project", "example.org/dev/project", RootSource.DIRECTORY)
WORKTREE = Root("file:///home/dev/worktree", "example.org/dev/project", RootSource.DIRECTORY)
ELSEWHERE = Root("file:///home/dev/elsewhere", None, RootSource.DIRECTORY)


def agent(name: str | None, root: Root | None = PROJECT, **fields: Any) -> Caller:
    """A live caller by this name; None is a stranger over HTTP."""
    if name is None:
        return Caller(Transport.HTTP, Era.MODERN, None, root=root, **fields)
    known: dict[str, Any] = {"live": True, "client_name": f"client-{name}"} | fields
    return Caller(Transport.RELAY, Era.LEGACY, f"agent:{name}", root=root, **known)


@dataclass
class World:
    """What a test acts on."""

    place: Place
    store: Store
    connections: Connections
    service: Reasoning
    reasoning: ReasoningReplies
    """What a client of the tools is told."""

    async def think(self, caller: Caller, text: str, session_id: str | None = None, **fields: Any) -> dict[str, Any]:
        """Record a thought that is not the last."""
        key = fields.pop("key", None)
        reply: dict[str, Any] = await self.reasoning.think(caller, Draft(text, True, **fields), session_id, key)
        return reply

    async def leave(self, caller: Caller) -> None:
        """The caller's transport closes."""
        assert caller.identity is not None
        await self.connections.detach(caller.identity)

    async def later(self, ms: int) -> None:
        """Time passes; the daemon goes on vouching for its callers."""
        self.place.shift += ms
        await self.connections.vouch()

    async def rows(self, sql: str, **params: Any) -> list[Row]:
        """What the store holds."""
        return await self.store.read(lambda tx: tx.all(sql, **params))

    async def run(self, sql: str, **params: Any) -> int:
        """Change the store behind everybody's back."""
        return await self.store.write(lambda tx: tx.run(sql, **params))

    async def kinds(self, subject: str) -> list[str]:
        """The kinds of the events about a subject, in order."""
        rows = await self.rows("SELECT kind FROM events WHERE subject = :subject ORDER BY seq", subject=subject)
        return [row["kind"] for row in rows]


@asynccontextmanager
async def living(place: Place) -> AsyncIterator[World]:
    """A world on a new store of this engine."""
    store = place.open()
    connections = make_connections(store)
    await connections.start()
    try:
        reasoning = Reasoning(store, connections)
        yield World(place, store, connections, reasoning, ReasoningReplies(reasoning))
    finally:
        await store.close()


def call(key: str, **arguments: Any) -> CallKey:
    """The key of a call of `thought`."""
    return CallKey.of("agent:a", key, "thought", arguments)
