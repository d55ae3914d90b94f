"""Commands of `holdfast resume` and `holdfast dismiss`."""

from __future__ import annotations

from typing import Any

from holdfast.briefing.service import Briefings
from holdfast.briefing.views import briefing_view
from holdfast.capability import Command, Progress
from holdfast.capability.briefing import Audience
from holdfast.identity.root_argument import root_argument
from holdfast.teams.service import Teams


def commands(briefings: Briefings, teams: Teams) -> list[Command]:
    async def resume(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await teams.refresh()
        audience = Audience(await root_argument(args.get("project")), None)
        return briefing_view(await briefings.on_request(audience, args.get("budget")))

    async def dismiss(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        root = await root_argument(args.get("project"))
        return {"dismissed": await briefings.dismiss(root, str(args.get("session") or ""))}

    return [Command("resume", resume, for_agents=True), Command("dismiss", dismiss)]
