"""Commands of `holdfast`, `holdfast show`, `holdfast resume` and `holdfast dismiss`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.briefing.service import Briefings
from holdfast.briefing.views import briefing_view, unfinished_view
from holdfast.capability import Command, Progress
from holdfast.capability.briefing import Audience
from holdfast.errors import BadInput
from holdfast.identity.root_argument import root_argument
from holdfast.teams.service import Teams

USUAL_LIMIT, MAX_LIMIT = 20, 200


def commands(briefings: Briefings, teams: Teams) -> list[Command]:
    async def resume(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await teams.refresh()
        audience = Audience(await root_argument(args.get("project")), None)
        return briefing_view(await briefings.on_request(audience, args.get("budget")))

    async def dismiss(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        root = await root_argument(args.get("project"))
        return {"dismissed": await briefings.dismiss(root, str(args.get("session") or ""))}

    async def unfinished(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        project, config = args.get("project"), _config(args.get("config"))
        root = None if project is None else await root_argument(project)
        found = await briefings.unfinished(root, _limit(args.get("limit")), progress, config)
        return unfinished_view(found, config or briefings.config)

    return [
        Command("resume", resume, for_agents=True),
        Command("dismiss", dismiss),
        Command("unfinished", unfinished),
    ]


def _limit(value: Any) -> int:
    if value is None:
        return USUAL_LIMIT
    if not isinstance(value, int) or not 1 <= value <= MAX_LIMIT:
        raise BadInput("limit", f"must be 1 to {MAX_LIMIT}")
    return value


def _config(value: Any) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.startswith("/"):
        raise BadInput("config", "must be an absolute path")
    return Path(value)
