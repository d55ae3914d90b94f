"""Now: what needs a person, and what every project is doing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from holdfast.bridge.model import IdleDecision
from holdfast.dashboard.activity import LATELY_MS, look
from holdfast.dashboard.page import Action, Done, Page, PageRequest, Part, Shown, shown
from holdfast.dashboard.rooms import Rooms
from holdfast.dashboard.strip import SHAPES
from holdfast.dashboard.waiting import CUT_OFF, Card, Waiting
from holdfast.errors import BadInput
from holdfast.files.in_time import in_time
from holdfast.identity.caller import Caller, Era, Transport
from holdfast.identity.project import MAX_ROOT, RootSource, locate
from holdfast.records.overview import overview
from holdfast.teams.model import is_temporary
from holdfast.text import counted


def parts(rooms: Rooms, waiting: Waiting) -> list[Part]:
    """Return the first screen, and the actions of its cards."""

    async def show(request: PageRequest) -> Shown:
        recently = await rooms.briefings.recently(LATELY_MS)
        cards, activity, records = await asyncio.gather(
            waiting.cards(recently), look(rooms, recently), overview(rooms.store, rooms.settings.home)
        )
        happened = {mark.kind for row in activity.rows for mark in row.strip.marks}
        return shown(
            "now.html",
            sentence=sentence(activity.at_work, cards),
            cards=cards,
            activity=activity,
            marks={kind: shape for kind, shape in SHAPES.items() if kind in happened},
            records=records,
        )

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

    async def dismiss_work(request: PageRequest) -> Done:
        root = await in_time(locate, request.field("root", MAX_ROOT), RootSource.ARGUMENT)
        await rooms.briefings.dismiss(root, request.field("session"))
        return Done("That work is no longer mentioned.")

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
        Action("/work/dismiss", dismiss_work),
    ]


def sentence(at_work: int, cards: Sequence[Card]) -> str:
    """Return the state of everything in one sentence."""
    cut_off = sum(card.kind == CUT_OFF for card in cards)
    waiting = len(cards) - cut_off
    parts = [
        *([f"{counted(at_work, 'agent')} at work"] if at_work else []),
        *([f"{waiting} {'waits' if waiting == 1 else 'wait'} for you"] if waiting else []),
        *([f"{cut_off} {'was' if cut_off == 1 else 'were'} cut off"] if cut_off else []),
    ]
    return ", ".join(parts) + (
        "" if waiting or cut_off else ", nothing waits for you" if parts else "Nothing waits for you"
    )
