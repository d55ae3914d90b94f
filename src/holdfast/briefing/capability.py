"""What briefing offers: hooks, a tool, a route and commands that tell an agent where the work stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.agents.hook_events import HookAnswer
from holdfast.briefing.hooks import KINDS, BriefingHooks
from holdfast.briefing.service import Briefings
from holdfast.briefing.unhooked import Unhooked
from holdfast.capability import (
    HOUR_SECONDS,
    SETTLE_SECONDS,
    Capability,
    Command,
    Hook,
    HookCall,
    Life,
    Loop,
    Phase,
    Progress,
)
from holdfast.teams.service import Teams

if TYPE_CHECKING:
    from holdfast.wire.http.rest import RestRoute
    from holdfast.wire.mcp.tools import Offer

LEDGER_SECONDS = 30.0


def capability(briefings: Briefings, machine: str, teams: Teams, unhooked: Unhooked) -> Capability:
    """Return the briefing capability of one daemon."""
    hooks = BriefingHooks(briefings, machine)

    async def brief(call: HookCall) -> HookAnswer | None:
        if call.event.is_managed or call.event.kind not in KINDS:
            return None
        return await hooks.handle(call.event, pid=call.pid, wanted=call.briefing, covered=call.covered)

    def prepare() -> None:
        import holdfast.briefing.ledger.folding  # noqa: F401
        from holdfast.agents import registry

        registry.prepare()

    def offers() -> list[Offer]:
        from holdfast.briefing.tools import offer

        return [offer(briefings)]

    def routes() -> list[RestRoute]:
        from holdfast.briefing.routes import routes

        return routes(briefings)

    def commands() -> list[Command]:
        from holdfast.briefing.commands import commands

        return [*commands(briefings, teams), Command("unhooked", look_for_unhooked)]

    async def look_for_unhooked(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await unhooked.look()
        return {"lines": unhooked.lines()}

    def loops() -> list[Loop]:
        return [
            Loop("briefing: sessions without hooks", unhooked.look, HOUR_SECONDS, first=SETTLE_SECONDS),
            Loop("briefing: ledgers", briefings.catch_up, LEDGER_SECONDS, first=SETTLE_SECONDS),
            Loop("briefing: git", briefings.look_at_git),
            Loop("briefing: breaks", briefings.record_breaks),
        ]

    return Capability(
        name="briefing",
        service=briefings,
        offers=offers,
        routes=routes,
        commands=commands,
        loops=loops,
        hooks=[Hook(brief, Phase.SUMMARY), Hook(lambda call: unhooked.notice(call.event), order=40)],
        life=Life(prepare=prepare, leave=lambda: briefings.record_breaks(once=True), notices=unhooked.lines),
    )
