"""One daemon's teams with the echo agent, on a store of either engine."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from tests.agents.echo.run import EchoAgent
from tests.contract.conftest import Place

from holdfast.agents import RunPart
from holdfast.identity.caller import Caller, Era, Transport
from holdfast.identity.managed import Managed
from holdfast.store import Store
from holdfast.teams.config_file import TeamsFile
from holdfast.teams.model import Ask
from holdfast.teams.runner import Runner
from holdfast.teams.service import Teams

CALLER = Caller(Transport.RELAY, Era.LEGACY, "agent:asker")
PATIENCE_MS = 60_000


class World:
    """One daemon's teams."""

    def __init__(
        self,
        place: Place,
        store: Store,
        name: str,
        agent: RunPart | None = None,
        team: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        """`team`: what teams.json says of every team besides its project and agent."""
        home = place.home / name
        home.mkdir(exist_ok=True)
        teams = {}
        for one in ("a", "b", "c"):
            (place.home / one).mkdir(exist_ok=True)
            teams[one] = {"project": str(place.home / one), "agent": "echo", **(team or {})}
        (home / "teams.json").write_text(json.dumps({"settings": settings, "teams": teams}))
        self.store = store
        echo = EchoAgent(place.home, place.home / "transcripts")
        self.runner = Runner(store, name, {"echo": agent or echo}, {})
        self.teams = Teams(store, TeamsFile(home), self.runner)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self.teams.start()
        self._task = asyncio.create_task(self.runner.run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.runner.stop()

    async def ask(self, to: str, text: str, caller: Caller = CALLER, **more: Any) -> Ask:
        return await self.teams.find(await self.teams.ask(caller, to, text, **more))

    async def answer(self, ask: Ask) -> Ask:
        return (await self.teams.wait(ask.id, PATIENCE_MS)).ask


@asynccontextmanager
async def running(
    place: Place, name: str = "one", agent: RunPart | None = None, **settings: Any
) -> AsyncIterator[World]:
    """Teams that are served until the block ends."""
    store = place.open()
    world = World(place, store, name, agent, **settings)
    await world.start()
    try:
        yield world
    finally:
        await world.stop()
        await store.close()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a state."""
    deadline = time.monotonic() + 30
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("it never came true")
        await asyncio.sleep(0.01)


def agent_of(ask: Ask) -> Caller:
    """The agent that works on an ask, as it asks others."""
    return replace(CALLER, managed=Managed(ask.conversation_id, ask.to_team))
