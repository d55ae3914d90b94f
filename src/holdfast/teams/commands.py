"""Commands of `holdfast teams`, `holdfast approve` and `holdfast deny`."""

from __future__ import annotations

from typing import Any

from holdfast.capability import Command, Progress
from holdfast.teams.service import Teams
from holdfast.teams.views import conversation_view, figures_view, found_view, permission_view


def commands(teams: Teams) -> list[Command]:
    """What the command line asks for."""

    async def figures(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return figures_view(await teams.figures())

    async def settings(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await teams.refresh()
        return {"off": dict(await teams.settings_off())}

    async def found(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await teams.refresh()
        return found_view(await teams.found())

    async def adopt(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await teams.refresh()
        made = await teams.adopt(args["team"], args["session"], args.get("from"), args.get("thread"))
        return conversation_view(made)

    async def permissions(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return {"requests": [permission_view(one) for one in await teams.permissions.open()]}

    async def permit(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        decided = await teams.permissions.decide(args["id"], bool(args["allowed"]), args.get("digest"))
        return {"id": decided.id, "team": decided.team, "tool": decided.tool}

    return [
        Command("teams-stats", figures, for_agents=True),
        Command("teams-settings", settings, for_agents=True),
        Command("teams-found", found),
        Command("teams-adopt", adopt),
        Command("permissions", permissions),
        Command("permit", permit),
    ]
