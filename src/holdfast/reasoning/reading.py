"""Reading: the recent context of a session, its structure, a range of whole thoughts, one thought."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.errors import BadInput, NotFound
from holdfast.reasoning import queries
from holdfast.reasoning.model import Session, Thought, next_number
from holdfast.reasoning.views import (
    REPLY_BYTES,
    branch_view,
    fitting,
    link_view,
    outline_view,
    session_view,
    size,
    thought_view,
)
from holdfast.store import Tx

CONTEXT_CUT = 2000
"""How many characters of a thought the context shows."""
MARGIN = 1000
"""Characters behind the cut that are searched for secrets too: none is told because its other half was cut off."""
RANGE_LIMIT = 100
OUTLINE_LIMIT = 200
BRANCHES_SHOWN = 100
LINKS_SHOWN = 50
AT_ONCE = 10
"""Whole thoughts fetched together: at most 10 MiB."""


def context(tx: Tx, session: Session, limit: int, before: int | None) -> dict[str, Any]:
    """The session with its last thoughts (those below `before`), its branches and the next number."""
    end = session_end(tx, session)
    newest_first = queries.thoughts_before(tx, session.id, before or end + 1, limit, CONTEXT_CUT + MARGIN)
    shown = fitting(thought_view(thought, CONTEXT_CUT) for thought in newest_first)
    shown.reverse()
    reply = {
        "session": session_view(session),
        "thoughts": shown,
        **_surroundings(tx, session),
        "nextThoughtNumber": next_number(session, end),
    }
    if any("truncated" in entry for entry in shown):
        reply["wholeThoughts"] = 'session {operation: "get", from, to} returns truncated thoughts whole.'
    if shown and shown[0]["thoughtNumber"] > 1:
        reply["nextCursor"] = str(shown[0]["thoughtNumber"])
    return reply


def outline(tx: Tx, session: Session, limit: int, after: int) -> dict[str, Any]:
    """The session's structure: number, branch, revision and beginning of each thought."""
    found = queries.thoughts(tx, session.id, after + 1, session_end(tx, session), limit + 1, cut=400)
    reply = {
        "session": session_view(session),
        "outline": [outline_view(thought) for thought in found[:limit]],
        **_surroundings(tx, session),
    }
    if len(found) > limit:
        reply["nextCursor"] = str(found[limit - 1].number)
    return reply


def passage(tx: Tx, session: Session, first: int | None, last: int | None) -> dict[str, Any]:
    """Whole thoughts from one number to another, as many as a reply carries."""
    end = session_end(tx, session)
    if first is None:
        first = last
    if last is None:
        last = min(end, first + RANGE_LIMIT - 1) if first is not None else None
    if first is None or last is None or not 1 <= first <= last <= end:
        raise BadInput(
            "from/to",
            f"must be a range within 1-{end}" if end else "names thoughts, and the session has none yet",
        )
    if last - first >= RANGE_LIMIT:
        raise BadInput("to", f"asks for {last - first + 1} thoughts; the limit is {RANGE_LIMIT}")
    shown = fitting(_shortened(thought) for thought in _whole(tx, session.id, first, last))
    reply: dict[str, Any] = {"session": session_view(session), "thoughts": shown}
    if any("truncated" in entry for entry in shown):
        reply["wholeThoughts"] = "Resource holdfast://sessions/{id}/thoughts/{n} holds a truncated thought whole."
    if shown and shown[-1]["thoughtNumber"] < last:
        reply["nextFrom"] = shown[-1]["thoughtNumber"] + 1
    return reply


def single(tx: Tx, session: Session, number: int) -> Thought:
    """One whole thought."""
    found = queries.thoughts(tx, session.id, number, number, 1)
    if not found:
        raise NotFound(
            f"Thought {number} of session {session.id} not found", recovery=f"(It has 1-{session_end(tx, session)}.)"
        )
    return found[0]


def filling(tx: Tx, session_id: str, first: int, last: int, budget: int) -> list[Thought]:
    """Whole thoughts from `first` on until their text fills the budget, at least one."""
    taken: list[Thought] = []
    for thought in _whole(tx, session_id, first, last):
        budget -= len(thought.content.encode("utf-8", "surrogatepass"))
        if budget < 0 and taken:
            break
        taken.append(thought)
    return taken


def session_end(tx: Tx, session: Session) -> int:
    """The number of the session's newest thought."""
    return queries.highest_number(tx, session.id) if session.damage else session.thought_count


def _surroundings(tx: Tx, session: Session) -> dict[str, Any]:
    around: dict[str, Any] = {
        "branches": [branch_view(branch) for branch in queries.branches(tx, session.id, BRANCHES_SHOWN)]
        if session.branch_count
        else []
    }
    links = [link_view(row) for row in queries.links(tx, session.id, LINKS_SHOWN)]
    return around | ({"links": links} if links else {})


def _whole(tx: Tx, session_id: str, first: int, last: int) -> Iterator[Thought]:
    while first <= last:
        batch = queries.thoughts(tx, session_id, first, last, AT_ONCE)
        if not batch:
            return
        yield from batch
        first = batch[-1].number + 1


def _shortened(thought: Thought) -> dict[str, Any]:
    """The thought, cut where it alone is more than a reply carries."""
    entry = thought_view(thought)
    cut = len(thought.content)
    while size(entry) > REPLY_BYTES:
        cut = cut * 3 // 4
        entry = thought_view(thought, cut)
    return entry
