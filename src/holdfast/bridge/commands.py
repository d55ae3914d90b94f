"""Commands of `holdfast send`, `holdfast pull` and `holdfast queue`."""

from __future__ import annotations

from typing import Any

from holdfast.bridge.model import Priority
from holdfast.bridge.service import Bridge
from holdfast.bridge.views import pulled_view, sent_view, status_view
from holdfast.capability import Command, Progress
from holdfast.identity.senders import OWNER
from holdfast.teams.service import Teams


def commands(bridge: Bridge, teams: Teams) -> list[Command]:
    async def send(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await teams.refresh()
        sent = await bridge.send(
            str(args["target"]),
            str(args["message"]),
            message_id=args.get("id"),
            priority=Priority[str(args.get("priority") or "normal").upper()],
            sender=OWNER.label,
            source="cli",
        )
        return sent_view(sent)

    async def pull(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await teams.refresh()
        return pulled_view(await bridge.pull(str(args["target"]), args.get("since")))

    async def queue(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await teams.refresh()
        return status_view(await bridge.status())

    return [
        Command("bridge-send", send),
        Command("bridge-pull", pull),
        Command("bridge-queue", queue, for_agents=True),
    ]
