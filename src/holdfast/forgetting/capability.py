"""What forgetting offers: the command of `holdfast forget`, finished in the background if it was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.capability import HOUR_SECONDS, Capability, Command, Loop, Progress
from holdfast.errors import BadInput
from holdfast.forgetting.service import Forgetting
from holdfast.forgetting.views import preview_view, removal_view
from holdfast.reasoning.service import Reasoning
from holdfast.store import Store
from holdfast.teams.service import Teams


def capability(store: Store, home: Path, reasoning: Reasoning, teams: Teams) -> Capability:
    """Return the command and the loop."""
    forgetting = Forgetting(store, home, reasoning, teams.projects, teams.release)

    async def forget(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        what = args.get("what")
        if not isinstance(what, str) or not what:
            raise BadInput("what", "must be a session id or a project's path or URI")
        if args.get("look"):
            return preview_view(await forgetting.preview(what))
        return removal_view(await forgetting.forget(what, progress))

    return Capability(
        name="forgetting",
        service=forgetting,
        commands=lambda: [Command("forget", forget)],
        loops=lambda: [Loop("forgetting", forgetting.finish, HOUR_SECONDS)],
    )
