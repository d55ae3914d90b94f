"""Now: what needs a person, and what every project is doing."""

from __future__ import annotations

from holdfast.bridge.model import IdleDecision
from holdfast.dashboard.page import Action, Done, Page, PageRequest, Part, Shown, shown
from holdfast.dashboard.rooms import Rooms
from holdfast.dashboard.waiting import Waiting
from holdfast.errors import BadInput
from holdfast.identity.caller import Caller, Era, Transport
from holdfast.teams.model import is_temporary


def parts(rooms: Rooms, waiting: Waiting) -> list[Part]:
    """Return the first screen, and the actions of its cards."""

    async def show(request: PageRequest) -> Shown:
        return shown("now.html", cards=await waiting.cards())

    async def decide_permission(request: PageRequest) -> Done:
        allowed = request.field("decision") == "allow"
        digest = request.field("digest") if allowed else None
        decided = await rooms.teams.permissions.decide(request.path["id"], allowed, digest)
        return Done(f"{decided.tool} is {'allowed' if allowed else 'denied'} to {decided.team}, this once.")

    async def decide_question(request: PageRequest) -> Done:
        target, decision = request.path["target"], request.field("decision")
        if decision in ("resume", "fresh"):
            return Done(await rooms.bridge.decide_restart(target, request.field("session"), decision))
        if decision in ("fork", "wait"):
            return Done(await rooms.bridge.decide_idle(target, IdleDecision(decision)))
        raise BadInput("decision", "must be resume, fresh, fork or wait")

    async def retry_message(request: PageRequest) -> Done:
        message = await rooms.queue.retry(request.field("id"), request.field("target"), request.sender)
        return Done(f"The message is queued for {message.target} again.")

    async def ask_again(request: PageRequest) -> Done:
        failed = await rooms.teams.look(request.path["id"])
        conversation = failed.conversation
        caller = Caller(Transport.HTTP, Era.MODERN, None, principal=request.who.key.name)
        thread = conversation.thread if conversation is not None else None
        await rooms.teams.ask(
            caller,
            failed.ask.to_team,
            failed.ask.text,
            from_team=(conversation.from_team or None) if conversation is not None else None,
            thread=None if thread is None or is_temporary(thread) else thread,
        )
        return Done(f"{failed.ask.to_team} was asked again.")

    return [
        Page("/", show),
        Action("/approvals/{id}", decide_permission),
        Action("/questions/{target}", decide_question),
        Action("/messages/retry", retry_message),
        Action("/asks/{id}/again", ask_again),
    ]
