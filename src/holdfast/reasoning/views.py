"""How sessions and thoughts look in a reply: the seed's names, no empty fields, within a size."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from holdfast.reasoning.model import Branch, Session, Thought
from holdfast.reasoning.wording import age, counted, one_line
from holdfast.store import Row
from holdfast.telling import Words, told
from holdfast.times import iso

REPLY_BYTES = 240 * 1024
"""How much a reply carries in entries, so that the whole of it stays under 256 KiB."""

HEADING = 80


def session_view(session: Session) -> dict[str, Any]:
    """A session's metadata."""
    return present(
        id=session.id,
        title=session.title,
        tags=list(session.tags),
        domain=session.domain,
        thoughtCount=session.thought_count,
        branchCount=session.branch_count,
        createdAt=iso(session.created_at),
        updatedAt=iso(session.updated_at),
        mcpRootUri=session.root_uri,
        status=session.status.value,
        pinned=session.pinned,
        damage=session.damage,
    )


def thought_view(thought: Thought, cut: int | None = None) -> dict[str, Any]:
    """A thought; over `cut` characters it is shortened and says so."""
    long = cut is not None and len(thought.content) > cut
    return _frame(thought) | present(
        thought=Words(thought.content, thought.connection_id, lambda text: text[:cut] if long else text),
        truncated=long or None,
        createdAt=iso(thought.created_at),
    )


def outline_view(thought: Thought) -> dict[str, Any]:
    """Where a thought stands and how it begins."""
    return _frame(thought) | {
        "begins": Words(thought.content, thought.connection_id, lambda text: one_line(text, HEADING))
    }


def told_thought(thought: Thought, reader: str | None) -> Thought:
    """A thought as a connection is told it: without secrets, unless it wrote them."""
    return replace(thought, content=Words(thought.content, thought.connection_id).told(reader))


def told_session(session: Session) -> Session:
    """A session as anybody is told it; who gave it its title and tags is not on record."""
    tags = tuple(str(told(tag, None)) for tag in session.tags)
    return replace(session, title=str(told(session.title, None)), tags=tags)


def branch_view(branch: Branch) -> dict[str, Any]:
    """A branch."""
    return {"branchId": branch.id, "fromThought": branch.from_number, "thoughtCount": branch.thought_count}


def link_view(row: Row) -> dict[str, Any]:
    """A linked session."""
    return present(sessionId=row["id"], title=row["title"], mcpRootUri=row["root_uri"])


def summary(session: Session, now: int) -> str:
    """A session in one line: "Session <id> (47 thoughts, last updated 2 min ago)"."""
    thoughts = counted(session.thought_count, "thought")
    return f"session {session.id} ({thoughts}, last updated {age(now - session.updated_at)})"


def present(**fields: Any) -> dict[str, Any]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def fitting(entries: Iterable[dict[str, Any]], budget: int = REPLY_BYTES) -> list[dict[str, Any]]:
    """As many of the entries as a reply carries, at least the first one."""
    taken: list[dict[str, Any]] = []
    for entry in entries:
        budget -= size(entry)
        if budget < 0 and taken:
            break
        taken.append(entry)
    return taken


def size(entry: dict[str, Any]) -> int:
    """The bytes of an entry on the wire."""
    return len(json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass")) + 1


def _frame(thought: Thought) -> dict[str, Any]:
    return present(
        thoughtNumber=thought.number,
        totalThoughts=thought.total,
        branchId=thought.branch_id,
        branchFromThought=thought.branch_from,
        revisesThought=thought.revises,
        requestedNumber=thought.requested_number if thought.renumbered else None,
        nextThoughtNeeded=None if thought.next_needed else False,
    )
