"""Commands of `holdfast send`, `cancel`, `retry`, `pull`, `tail`, `queue`, `bridge fork` and `bridge wait`."""

from __future__ import annotations

from typing import Any

from holdfast.bridge.model import IdleDecision, Priority
from holdfast.bridge.queue_changes import QueueChanges
from holdfast.bridge.results import Followed
from holdfast.bridge.service import Bridge
from holdfast.bridge.views import (
    finished_view,
    followed_view,
    listed_view,
    pulled_view,
    retried_view,
    sent_view,
    status_view,
)
from holdfast.capability import Command, Progress
from holdfast.identity.senders import OWNER
from holdfast.teams.service import Teams

MOST_LISTED = 200
"""Messages of a target that `holdfast queue TARGET` shows."""


def commands(bridge: Bridge, teams: Teams, changes: QueueChanges) -> list[Command]:
    async def send(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await teams.refresh()
        named = args.get("priority")
        priority = None if named is None else Priority[str(named).upper()]
        target, message = str(args["target"]), str(args["message"])
        if args.get("replaces") is not None:
            return sent_view(await changes.edit(target, str(args["replaces"]), message, priority))
        sent = await bridge.send(
            target,
            message,
            message_id=args.get("id"),
            priority=Priority.NORMAL if priority is None else priority,
            sender=OWNER.label,
            source="cli",
        )
        return sent_view(sent)

    async def cancel(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return finished_view(await changes.cancel(str(args["id"]), str(args["target"])))

    async def retry(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return retried_view(await changes.retry(str(args["id"]), str(args["target"])))

    async def pull(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await teams.refresh()
        return pulled_view(await bridge.pull(str(args["target"]), args.get("since"), questions=True))

    async def follow(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await teams.refresh()
        followed = [Followed(str(target), str(since)) for target, since in args["since"].items()]
        return followed_view(await bridge.follow(followed))

    async def queue(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await teams.refresh()
        return status_view(await bridge.status())

    async def messages(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        found = await changes.unfinished(str(args["target"]), MOST_LISTED)
        return {"messages": [listed_view(message) for message in found]}

    async def decide(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await teams.refresh()
        return {"answer": await bridge.decide_idle(str(args["target"]), IdleDecision(args["decision"]))}

    return [
        Command("bridge-send", send),
        Command("bridge-cancel", cancel),
        Command("bridge-retry", retry),
        Command("bridge-decide", decide),
        Command("bridge-pull", pull),
        Command("bridge-follow", follow),
        Command("bridge-queue", queue, for_agents=True),
        Command("bridge-messages", messages),
    ]
