"""The protocol run of a project: its phase, what blocks, what comes next."""

from __future__ import annotations

from holdfast.capability.briefing import Audience, Item, Rank, Source
from holdfast.identity.project import path_of
from holdfast.protocol import model
from holdfast.protocol.active_run import ActiveRun
from holdfast.protocol.service import Protocols
from holdfast.text.quoting import in_quotes, quoted

OBJECTIVE = 160
MOST_NAMED = 4


def run(protocols: Protocols) -> Source:
    """The active run of the worktree."""

    async def tell(audience: Audience) -> list[Item]:
        path = path_of(audience.root.uri)
        situation = await protocols.active_run(str(path)) if path is not None else None
        return [] if situation is None else [_item(situation)]

    return Source(frozenset({"protocol"}), tell, order=20)


def _item(situation: ActiveRun) -> Item:
    standing = situation.standing
    blocking = model.blocked_until(situation.protocol, standing)
    text = (
        f"Protocol session {situation.run.id} ({quoted(situation.run.objective, OBJECTIVE)}): phase {standing.phase}."
    )
    if standing.held_by is not None:
        text += f" Held up until {standing.held_by} is met."
    if not blocking:
        return Item("protocol", Rank.NEXT, f"{text} Nothing blocks.", "get_session_state")
    gate = situation.protocol.gate(blocking[0])
    named = ", ".join(blocking[:MOST_NAMED]) + (" …" if len(blocking) > MOST_NAMED else "")
    following = f" Next: {in_quotes(gate.recovery[0], OBJECTIVE)}" if gate is not None and gate.recovery else ""
    whole = f"{text} Gates to meet: {named}.{following}"
    return Item("protocol", Rank.BLOCKED, whole, "get_blocked_reason", shorter=f"{text} Gates to meet: {named}.")
