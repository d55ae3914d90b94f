"""What teams offer: asking other teams, and the agents that answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.capability import Capability, Command, Life, Loop
from holdfast.store.events import Event
from holdfast.teams.briefing_source import colleagues
from holdfast.teams.runner import Runner
from holdfast.teams.service import Teams

if TYPE_CHECKING:
    from holdfast.wire.http.rest import RestRoute
    from holdfast.wire.mcp.tools import Offer


def capability(teams: Teams, runner: Runner, *, shared: bool) -> Capability:
    """The teams of one daemon; `shared` where other daemons have the same store open."""

    def offers() -> list[Offer]:
        from holdfast.teams.tools import offer

        return [offer(teams)]

    def routes() -> list[RestRoute]:
        from holdfast.teams.routes import routes

        return routes(teams)

    def commands() -> list[Command]:
        from holdfast.teams.commands import commands

        return commands(teams)

    def loops() -> list[Loop]:
        from holdfast.teams.loops import loops

        return loops(teams, runner)

    def on_events(events: Sequence[Event]) -> None:
        if shared and any(event.kind == "teams.asked" for event in events):
            runner.wake()  # an ask may have come through another daemon
        if shared:
            runner.cancel(event.subject for event in events if event.kind == "teams.cancelled")

    async def health() -> dict[str, Any]:
        from holdfast.teams.views import approval_view

        return {"approvals": [{"team": one.team, **approval_view(one)} for one in await teams.permissions.open()]}

    def unconfirmed() -> list[str]:
        return [str(fault) for fault in teams.config.unconfirmed]

    return Capability(
        name="teams",
        service=teams,
        offers=offers,
        routes=routes,
        commands=commands,
        loops=loops,
        briefing_source=colleagues(teams),
        life=Life(
            start=teams.start,
            on_events=on_events,
            close=runner.stop,
            is_busy=lambda: runner.busy,
            notices=unconfirmed,
            health=health,
        ),
    )
