"""The dashboard with teams that the echo agent answers for, and rows as long use would leave them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from tests.contract.conftest import Place
from tests.contract.dashboard_world import Dashboard, csrf_of, dashboard

from holdfast.store import Tx
from holdfast.teams.model import Ask
from holdfast.teams.service import Teams

PATIENCE_MS = 60_000
TEAMS: dict[str, dict[str, Any]] = {"shop": {}, "bank": {"policy": "ask"}, "docs": {"agent": "claude"}}


class TeamsDashboard:
    """A dashboard whose teams are served."""

    def __init__(self, world: Dashboard) -> None:
        self.world = world
        self.teams = world.app.service(Teams)

    async def answered(self, ask_id: str) -> Ask:
        """An ask, when it is over."""
        return (await self.teams.wait(ask_id, PATIENCE_MS)).ask

    async def asked(self, browser: httpx2.AsyncClient, team: str, question: str) -> tuple[str, Ask]:
        """Ask by the form; where the browser is sent, and the ask."""
        answer = await post(browser, "/teams/ask", team=team, question=question)
        assert answer.status_code == 303, answer.text
        place = answer.headers["location"]
        conversation = await self.teams.overview.conversation(int(place.rsplit("/", 1)[1]))
        (ask, *_) = (await self.teams.history(conversation.from_team, team, conversation.thread, 1)).asks
        return place, ask


@asynccontextmanager
async def teams_dashboard(place: Place, serve: bool = True, **settings: Any) -> AsyncIterator[TeamsDashboard]:
    """The dashboard of three teams: shop, bank that asks first, and docs with Claude Code, which is not run here."""
    teams = {}
    for name, more in TEAMS.items():
        (place.home / name).mkdir(exist_ok=True)
        teams[name] = {"project": str(place.home / name), "agent": "echo", **more}
    (place.home / "teams.json").write_text(json.dumps({"settings": settings, "teams": teams}))
    async with dashboard(place) as world:
        made = TeamsDashboard(world)
        await made.teams.start()
        runner = made.teams._runner
        running = asyncio.create_task(runner.run()) if serve else None
        try:
            yield made
        finally:
            if running is not None:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
            await runner.stop()


async def post(browser: httpx2.AsyncClient, path: str, **fields: str) -> httpx2.Response:
    """Send a form, as a browser without the script does."""
    return await browser.post(path, data={"csrf": await csrf_of(browser), "back": "/teams", **fields})


def words(page: str) -> str:
    """What a page says, without its markup."""
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def add_asks(tx: Tx, conversation_id: int, team: str, asks: list[dict[str, Any]]) -> None:
    """Asks as they are stored when they are over."""
    for number, one in enumerate(asks):
        row = {
            "id": f"a{conversation_id}-{number}",
            "text": "question",
            "answer": "answer",
            "status": "answered",
            "cost": None,
            "tokens": 100,
            "at": tx.now(),
            **one,
        }
        tx.run(
            "INSERT INTO asks (id, conversation_id, to_team, text, chain, status, attempts, answer, duration_ms,"
            " cost_microusd, input_tokens, output_tokens, created_at, started_at, finished_at)"
            " VALUES (:id, :conversation, :team, :text, '[]', :status, 1, :answer, 5, :cost, :tokens, :tokens,"
            " :at, :at, :finished)",
            id=row["id"],
            conversation=conversation_id,
            team=team,
            text=row["text"],
            status=row["status"],
            answer=row["answer"],
            cost=row["cost"],
            tokens=row["tokens"],
            at=row["at"],
            finished=row.get("finished", row["at"] + 10),
        )
