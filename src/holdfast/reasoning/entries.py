"""Single sessions, thoughts and branches as JSON: what replies and exports are made of."""

from __future__ import annotations

import json
from typing import Any

from holdfast.reasoning.model import Branch, Piece, Session, Thought
from holdfast.text import one_line
from holdfast.text.masking import ANYBODY, Words
from holdfast.times import iso

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


def piece_view(piece: Piece) -> dict[str, Any]:
    """A thought as far as a page holds it; its secrets were masked for whoever reads it."""
    part = {} if piece.whole else {"truncated": True, "fromCharacter": piece.start, "characters": piece.characters}
    return thought_view(piece.thought) | {"thought": Words(piece.thought.content, ANYBODY)} | part


def outline_view(thought: Thought) -> dict[str, Any]:
    """Where a thought stands and how it begins."""
    return _frame(thought) | {
        "begins": Words(thought.content, thought.connection_id, lambda text: one_line(text, HEADING))
    }


def branch_view(branch: Branch) -> dict[str, Any]:
    """A branch."""
    return {"branchId": branch.id, "fromThought": branch.from_number, "thoughtCount": branch.thought_count}


def present(**fields: Any) -> dict[str, Any]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def size(entry: Any) -> int:
    """The characters of an entry on the wire."""
    return len(json.dumps(entry, ensure_ascii=False, separators=(",", ":"))) + 1


def _frame(thought: Thought) -> dict[str, Any]:
    return present(
        thoughtNumber=thought.number,
        totalThoughts=thought.total,
        branchId=thought.branch_id,
        branchFromThought=thought.branch_from,
        revisesThought=thought.revises,
        isRevision=True if thought.is_revision and thought.revises is None else None,
        requestedNumber=thought.requested_number if thought.renumbered else None,
        nextThoughtNeeded=None if thought.next_needed else False,
    )
