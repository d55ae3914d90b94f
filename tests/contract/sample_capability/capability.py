"""A room that has one of everything that a capability can offer. What hooks do without is imported when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.agents.hook_events import HookAnswer, HookKind
from holdfast.capability import Capability, Command, Hook, HookCall, Life, Loop, Progress
from holdfast.capability.briefing import Audience, Item, Rank, Source

if TYPE_CHECKING:
    from holdfast.wire.http.rest import Reply, RestRequest, RestRoute
    from holdfast.wire.mcp.tools import Call, Offer


class Greetings:
    """Everybody who was greeted, and how often the loop came round."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.rounds = 0

    def greet(self, name: str) -> dict[str, Any]:
        """Greet somebody."""
        self.names.append(name)
        return {"greeting": f"Good morning, {name}."}

    async def count(self) -> None:
        """Come round once."""
        self.rounds += 1


def capability() -> Capability:
    """The greetings of one daemon."""
    greetings = Greetings()

    def offers() -> list[Offer]:
        from holdfast.wire.mcp.tools import Offer, Params, Repetition, Tool

        class GreetParams(Params):
            name: str

        async def greet(call: Call, params: GreetParams) -> dict[str, Any]:
            return greetings.greet(params.name)

        tool = Tool("greet", "Greet", "Greet somebody.", GreetParams, greet, Repetition.IDEMPOTENT)
        return [Offer(tools=[tool], order=80)]

    def routes() -> list[RestRoute]:
        from holdfast.wire.http.rest import Answer, Reply, RestRoute

        async def show(asked: RestRequest) -> Reply:
            return Reply({"names": greetings.names, "rounds": greetings.rounds})

        return [RestRoute("GET", "/api/greetings", "greetings", "Who was greeted", show, {200: Answer("They.")})]

    async def command(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return greetings.greet(str(args["name"]))

    async def answer(call: HookCall) -> HookAnswer | None:
        return HookAnswer(context="Greet whoever comes.") if call.event.kind is HookKind.STARTED else None

    async def tell(audience: Audience) -> list[Item]:
        named = ", ".join(greetings.names)
        return [Item("greetings", Rank.OTHERS, f"Greeted here: {named}.", "greet")] if named else []

    return Capability(
        name="greetings",
        service=greetings,
        offers=offers,
        routes=routes,
        commands=lambda: [Command("greet", command)],
        loops=lambda: [Loop("greetings", greetings.count, 0.05)],
        hooks=[Hook(answer, order=40)],
        briefing_source=Source(frozenset({"greetings"}), tell, order=50),
        life=Life(notices=lambda: [f"{len(greetings.names)} greetings are waiting for an answer."]),
    )
