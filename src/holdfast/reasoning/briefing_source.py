"""The reasoning that an agent would continue."""

from __future__ import annotations

from holdfast.capability.briefing import Audience, Item, Rank, Source
from holdfast.reasoning.model import ADOPTED
from holdfast.reasoning.service import OfferedSession, Reasoning
from holdfast.text import counted
from holdfast.text.quoting import quoted
from holdfast.times import iso

TITLE = 100
THOUGHT = 220
MORE = 'init {operation: "load_context"}'
OWN = "own thoughts"
"""The kind of the agent's own thoughts, which are in its context unless that was compacted."""


def thoughts(reasoning: Reasoning) -> Source:
    """Return the session that the next thought continues, and the pinned one if that is another."""

    async def tell(audience: Audience) -> list[Item]:
        offered = await reasoning.offered(audience.root, audience.identity)
        return [
            Item(
                OWN if found.own else "thoughts",
                Rank.THOUGHTS,
                _whole(found),
                f'session {{operation: "get", sessionId: "{found.session.id}"}}' if found.own and offered[1:] else MORE,
                shorter=_short(found),
            )
            for found in offered
            if found.session.thought_count
        ]

    return Source(frozenset({"thoughts", OWN}), tell, order=30)


def _short(offered: OfferedSession) -> str:
    session = offered.session
    came = next((f", {quoted(tag, TITLE)}" for tag in session.tags if tag.startswith(ADOPTED)), "")
    kind = "Pinned reasoning session" if session.pinned else "Reasoning session"
    return (
        f"{kind} {quoted(session.title, TITLE)}{came}: {counted(session.thought_count, 'thought')},"
        f" last {iso(session.updated_at)}."
    )


def _whole(offered: OfferedSession) -> str:
    parts = [_short(offered)]
    if offered.first is not None and offered.first.number not in {one.number for one in offered.last}:
        parts.append(f"It began: {quoted(offered.first.content, THOUGHT)}.")
    parts += [f"Thought {one.number}: {quoted(one.content, THOUGHT)}." for one in offered.last]
    if offered.branches:
        names = ", ".join(quoted(branch.id, 40) for branch in offered.branches)
        parts.append(f"Branches: {names}.")
    return " ".join(parts)
