"""The reasoning that an agent would go on with."""

from __future__ import annotations

from holdfast.briefing.model import Item, Rank
from holdfast.briefing.sources import Place, Source
from holdfast.quoting import quoted
from holdfast.reasoning.library import Glance
from holdfast.reasoning.model import ADOPTED
from holdfast.reasoning.service import Reasoning
from holdfast.reasoning.wording import counted
from holdfast.times import iso

TITLE = 100
THOUGHT = 220
MORE = 'init {operation: "load_context"}'
OWN = "own thoughts"
"""The kind of what the agent itself thought: it is in its context unless that was compacted."""


def thoughts(reasoning: Reasoning) -> Source:
    """The session that the next thought goes on with."""

    async def tell(place: Place) -> list[Item]:
        found = await reasoning.library.glance(place.root, place.identity)
        if found is None or not found.session.thought_count:
            return []
        return [Item(OWN if found.own else "thoughts", Rank.THOUGHTS, _whole(found), MORE, shorter=_short(found))]

    return Source(frozenset({"thoughts", OWN}), tell)


def _short(found: Glance) -> str:
    session = found.session
    came = next((f", {quoted(tag, TITLE)}" for tag in session.tags if tag.startswith(ADOPTED)), "")
    return (
        f"Reasoning session {quoted(session.title, TITLE)}{came}: {counted(session.thought_count, 'thought')},"
        f" last {iso(session.updated_at)}."
    )


def _whole(found: Glance) -> str:
    parts = [_short(found)]
    if found.first is not None and found.first.number not in {one.number for one in found.last}:
        parts.append(f"It began: {quoted(found.first.content, THOUGHT)}.")
    parts += [f"Thought {one.number}: {quoted(one.content, THOUGHT)}." for one in found.last]
    if found.branches:
        names = ", ".join(quoted(branch.id, 40) for branch in found.branches)
        parts.append(f"Branches: {names}.")
    return " ".join(parts)
