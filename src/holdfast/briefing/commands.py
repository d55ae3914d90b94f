"""Commands of `holdfast resume` and `holdfast dismiss`."""

from __future__ import annotations

from typing import Any

from holdfast.briefing.service import Briefings
from holdfast.capability import Command, Progress
from holdfast.capability.briefing import Place
from holdfast.identity.root_argument import root_argument
from holdfast.teams.service import Teams


def commands(briefings: Briefings, teams: Teams) -> list[Command]:
    """What the command line asks for."""

    async def resume(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await teams.refresh()
        found = await briefings.asked(Place(await root_argument(args.get("project")), None), args.get("budget"))
        return found.view()

    async def dismiss(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        root = await root_argument(args.get("project"))
        return {"dismissed": await briefings.dismiss(root, str(args.get("session") or ""))}

    return [Command("resume", resume, for_agents=True), Command("dismiss", dismiss)]
