"""The protocol run of a project: its phase, what blocks, what comes next."""

from __future__ import annotations

from holdfast.capability.briefing import Audience, Item, Rank, Source
from holdfast.identity.project import path_of
from holdfast.protocol.runs import ActiveRun
from holdfast.protocol.service import Protocols

OBJECTIVE = 160


def run(protocols: Protocols) -> Source:
    """Return the active run of the worktree."""

    async def tell(audience: Audience) -> list[Item]:
        path = path_of(audience.root.uri)
        active = await protocols.active_run(str(path)) if path is not None else None
        return [] if active is None else [_item(active)]

    return Source(frozenset({"protocol"}), tell, order=20)


def _item(active: ActiveRun) -> Item:
    text = f"Protocol {active.described(OBJECTIVE)}"
    gates, step = active.still_to_meet(OBJECTIVE)
    if not gates:
        return Item("protocol", Rank.NEXT, f"{text} Nothing blocks.", "get_blocked_reason")
    whole = f"{text} {gates}{step}"
    return Item("protocol", Rank.BLOCKED, whole, "get_blocked_reason", shorter=f"{text} {gates}")
