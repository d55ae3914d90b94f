"""What the bridge offers: a queue per target, delivery by hooks or managed turns, the saved task, chats."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from holdfast.bridge.briefing_source import inbox
from holdfast.bridge.hooks import BridgeHooks
from holdfast.bridge.service import Bridge
from holdfast.capability import SETTLE_SECONDS, Capability, Command, Hook, Life, Loop
from holdfast.config import Settings
from holdfast.store import Store
from holdfast.teams.service import Teams
from holdfast.teams.team import Delivery

if TYPE_CHECKING:
    from holdfast.bridge.chat.service import Chats
    from holdfast.bridge.managed_delivery import ManagedDelivery
    from holdfast.bridge.queue_changes import QueueChanges
    from holdfast.bridge.session_file_watch import Watch
    from holdfast.wire.http.rest import RestRoute
    from holdfast.wire.http.webhooks import Webhook
    from holdfast.wire.mcp.tools import Offer

SWEEP_SECONDS = 15.0
LOOK_SECONDS = 2.0


def capability(
    store: Store, settings: Settings, machine: str, bridge: Bridge, hooks: BridgeHooks, teams: Teams
) -> Capability:
    @cache
    def delivery() -> ManagedDelivery:
        from holdfast.bridge.managed_delivery import ManagedDelivery

        return ManagedDelivery(
            store, bridge, teams, machine, can_run=teams.can_run, alive=hooks.attended, idle=hooks.idle
        )

    @cache
    def watch() -> Watch:
        from holdfast.bridge.session_file_watch import Watch

        return Watch(store, bridge, teams.targets)

    @cache
    def changes() -> QueueChanges:
        from holdfast.bridge.queue_changes import QueueChanges

        return QueueChanges(store, teams.targets)

    def served(target: str) -> bool:
        """Return whether a message will be taken soon: an agent is at work, or a turn can be run."""
        team = teams.targets().get(target)
        can_run = team is not None and team.delivery is not Delivery.HOOK and teams.can_run(team)
        return can_run or hooks.attended(target)

    @cache
    def chats() -> Chats:
        from holdfast.bridge.chat.service import Chats

        return Chats(store, teams.targets, teams.permissions, machine, settings, served=served, refresh=teams.refresh)

    def prepare() -> None:
        delivery(), watch(), chats()

    def offers() -> list[Offer]:
        from holdfast.bridge.tools import offer, offer_task

        return [offer_task(bridge), offer(bridge, changes())]

    def routes() -> list[RestRoute]:
        from holdfast.bridge.routes import routes

        return routes(bridge, changes())

    def webhooks() -> list[Webhook]:
        from holdfast.bridge.chat.telegram import SECRET_HEADER, WEBHOOK
        from holdfast.wire.http.webhooks import Webhook

        return [Webhook(WEBHOOK, SECRET_HEADER, chats().webhook)]

    def commands() -> list[Command]:
        from holdfast.bridge.commands import commands

        return commands(bridge, teams, changes())

    def loops() -> list[Loop]:
        return [
            Loop("bridge: queue", bridge.sweep, SWEEP_SECONDS, first=SWEEP_SECONDS),
            Loop("bridge: hooks", hooks.keep, LOOK_SECONDS, first=LOOK_SECONDS),
            Loop("bridge: files", watch().step, LOOK_SECONDS),
            # Started later, so that an agent that is about to reconnect is seen first.
            Loop("bridge: turns", delivery().run, first=SETTLE_SECONDS),
            *(Loop(name, run) for name, run in chats().loops().items()),
        ]

    async def sweep() -> None:
        await chats().sweep()
        if keep_ms := settings.keep_ms:
            await bridge.forget_old(keep_ms)

    async def close() -> None:
        if chats.cache_info().currsize:  # else they were never made
            await chats().close()

    async def health() -> dict[str, Any]:
        from holdfast.bridge.views import chat_status_view

        return {"chats": chat_status_view(await chats().status())}

    return Capability(
        name="bridge",
        service=bridge,
        offers=offers,
        routes=routes,
        webhooks=webhooks,
        commands=commands,
        loops=loops,
        hooks=[Hook(lambda call: hooks.handle(call.event, call.pid), order=20, covers=frozenset({"task", "messages"}))],
        briefing_source=inbox(bridge),
        life=Life(prepare=prepare, sweep=sweep, close=close, health=health, is_busy=lambda: bool(chats().loops())),
    )
