"""Replies of reasoning as JSON, for tools and commands alike: the seed's names, no empty fields, within a size."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.identity.caller import Caller
from holdfast.reasoning.analysis import analyze
from holdfast.reasoning.fulltext import Term
from holdfast.reasoning.model import KEEP_DELETED_MS, Branch, Piece, Session, Status, Thought
from holdfast.reasoning.reading import CONTEXT_CUT, LEAST_ROOM
from holdfast.reasoning.results import (
    BoundRoot,
    CallerState,
    FoundThought,
    Held,
    LoadedContext,
    NotLoaded,
    OutlinePage,
    RecordedThought,
    SearchPage,
    SessionsPage,
    StartedSession,
    Step,
    Surroundings,
    ThoughtsPage,
)
from holdfast.reasoning.search import snippet
from holdfast.reasoning.session_browser import REPLY_CHARACTERS, cursor_after
from holdfast.text import age, counted, one_line
from holdfast.text.masking import ANYBODY, Words
from holdfast.times import iso

ROOM_FOR_BRANCHES = 4_000
ROOM_FOR_LINKS = 3_000
HEADING = 80

PAUSED = {
    "recorded": False,
    "paused": True,
    "message": "Recording is paused for this project; `holdfast resume-recording` starts it again. Nothing was stored.",
}

# -- single sessions, thoughts and branches ---------------------------------------------------------------------------


def session_view(session: Session) -> dict[str, Any]:
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
    """Show a thought; over `cut` characters it is shortened and says so."""
    long = cut is not None and len(thought.content) > cut
    return _frame(thought) | present(
        thought=Words(thought.content, thought.connection_id, lambda text: text[:cut] if long else text),
        truncated=long or None,
        createdAt=iso(thought.created_at),
    )


def piece_view(piece: Piece) -> dict[str, Any]:
    """Show the part of a thought that a page holds; its secrets are already masked for the reader."""
    part = {} if piece.whole else {"truncated": True, "fromCharacter": piece.start, "characters": piece.characters}
    return thought_view(piece.thought) | {"thought": Words(piece.thought.content, ANYBODY)} | part


def outline_view(thought: Thought) -> dict[str, Any]:
    return _frame(thought) | {
        "begins": Words(thought.content, thought.connection_id, lambda text: one_line(text, HEADING))
    }


def branch_view(branch: Branch) -> dict[str, Any]:
    return {"branchId": branch.id, "fromThought": branch.from_number, "thoughtCount": branch.thought_count}


def present(**fields: Any) -> dict[str, Any]:
    """Drop the fields without a value."""
    return {name: value for name, value in fields.items() if value is not None}


def size(entry: Any) -> int:
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


# -- thinking and coming back ---------------------------------------------------------------------------------------


def recorded_view(done: RecordedThought | None) -> dict[str, Any]:
    """Show a recorded thought; None if recording is paused."""
    if done is None:
        return dict(PAUSED)
    session, draft, recorded = done.session, done.draft, done.recorded
    renumbered = draft.requested_number is not None and draft.requested_number != recorded.number
    message = _pass_the_id_on(session) if done.needs_id else None
    return present(
        sessionId=session.id,
        title=session.title,
        thoughtNumber=recorded.number,
        totalThoughts=recorded.total,
        branchId=draft.branch_id,
        thoughtCount=recorded.count,
        nextThoughtNeeded=draft.next_needed,
        status=done.outcome.value,
        renumbered=renumbered or None,
        requestedNumber=draft.requested_number if renumbered else None,
        duplicate=recorded.duplicate or None,
        reopened=session.status is Status.ARCHIVED or None,
        crossRoot=done.cross_root or None,
        fromOtherRoot=done.from_root,
        others=_held_views(done.others) or None,
        previous=previous_view(done.previous) if done.previous else None,
        message=_go_on_with(done.previous) if done.previous else message,
    )


def started_view(started: StartedSession | None) -> dict[str, Any]:
    """Show a started session; None if recording is paused."""
    if started is None:
        return {"success": False, **PAUSED}
    session = started.session
    message = f"Started session {session.id}"
    return present(
        success=True,
        message=f"{message}. {_pass_the_id_on(session)}" if started.needs_id else message,
        session=session_view(session),
        nextThoughtNumber=1,
        others=_held_views(started.others) or None,
    )


def context_view(loaded: LoadedContext | NotLoaded) -> dict[str, Any]:
    """Show a loaded session with its last thoughts, or why none was loaded."""
    if isinstance(loaded, NotLoaded):
        return present(
            success=False,
            message=loaded.message,
            recovery=loaded.recovery,
            heldByOthers=_held_views(loaded.held) or None,
            attachedSession=loaded.attached.id if loaded.attached else None,
        )
    session = loaded.session
    page: dict[str, Any] = {
        "session": session_view(session),
        "thoughts": [],
        **surroundings_view(loaded.surroundings),
        "nextThoughtNumber": loaded.next_number,
    }
    entries = (thought_view(thought, CONTEXT_CUT) for thought in loaded.newest_first)
    shown = fitting(entries, room_beside(page))
    shown.reverse()
    page["thoughts"] = shown
    if any("truncated" in entry for entry in shown):
        page["wholeThoughts"] = 'session {operation: "get", from, to} returns truncated thoughts whole.'
    if shown and shown[0]["thoughtNumber"] > 1:
        page["nextCursor"] = str(shown[0]["thoughtNumber"])
    verb = "Loaded" if loaded.named else "Auto-recovered"
    return present(
        success=True,
        message=f"{verb} {summary(session, loaded.loaded_at)}",
        **page,
        crossRoot=loaded.cross_root or None,
        fromOtherRoot=loaded.from_root,
        justBegun=previous_view(loaded.just_begun) if loaded.just_begun else None,
    )


def summary(session: Session, now: int) -> str:
    """Return a session in one line: "session <id> (47 thoughts, last updated 2 min ago)"."""
    thoughts = counted(session.thought_count, "thought")
    return f"session {session.id} ({thoughts}, last updated {age(now - session.updated_at)})"


def previous_view(session: Session) -> dict[str, Any]:
    """Show a session that a caller could continue instead."""
    return {
        "sessionId": session.id,
        "title": session.title,
        "thoughtCount": session.thought_count,
        "updatedAt": iso(session.updated_at),
    }


def _held_views(held: Iterable[Held]) -> list[dict[str, Any]]:
    return [{"sessionId": session.id, "title": session.title, "client": holder.label} for session, holder in held]


def _go_on_with(previous: Session) -> str:
    return (
        "A new session was started. To continue the previous one instead:"
        f' init {{operation: "load_context", sessionId: "{previous.id}"}}.'
    )


def _pass_the_id_on(session: Session) -> str:
    return f'Not recognised across calls and no root: pass sessionId "{session.id}" with each call to continue it.'


# -- who and where ----------------------------------------------------------------------------------------------------


def state_view(state: CallerState) -> dict[str, Any]:
    caller, connection = state.caller, state.connection
    return present(
        success=True,
        era=caller.era.value,
        transport=caller.transport.value,
        client=" ".join(filter(None, (caller.client_name, caller.client_version))) or None,
        agentSession=caller.agent_session,
        connection={"session_id": connection.id} if connection else None,
        root=caller.root.uri if caller.root else None,
        rootFrom=caller.root.source.value if caller.root else None,
        boundRoot=connection.bound_root if connection else None,
        session=session_view(state.session) if state.session else None,
        recording=state.recording,
        message=None if connection else "Not recognised across calls; pass sessionId or mcpRootUri with each.",
    )


def roots_view(caller: Caller, bound_root: str | None) -> dict[str, Any]:
    return present(
        success=True,
        roots=list(caller.client_roots),
        root=caller.root.uri if caller.root else None,
        rootFrom=caller.root.source.value if caller.root else None,
        boundRoot=bound_root,
    )


def bound_view(bound: BoundRoot | None) -> dict[str, Any]:
    """Show the root that a caller was bound to; None for an unrecognised caller."""
    if bound is None:
        message = "This caller is not recognised across calls, so nothing can be bound to it."
        return {"success": False, "message": f"{message} Pass mcpRootUri with each call."}
    session = session_view(bound.session) if bound.session else None
    return present(success=True, boundRoot=bound.uri, session=session)


# -- browsing sessions ------------------------------------------------------------------------------------------------


def sessions_view(page: SessionsPage) -> dict[str, Any]:
    shown = fitting(map(session_view, page.sessions), REPLY_CHARACTERS)
    more = page.more or len(shown) < len(page.sessions)
    return present(
        success=True, sessions=shown, nextCursor=cursor_after(page.sessions[len(shown) - 1]) if more else None
    )


def search_view(page: SearchPage) -> dict[str, Any]:
    named = [
        present(sessionId=found.id, title=found.title, status=found.status.value, tags=list(found.tags) or None)
        for found in page.sessions
    ]
    shown = fitting((_found_view(hit, text, page.terms) for hit, text in page.thoughts), room_beside(named))
    more = page.more or len(shown) < len(page.thoughts)
    return present(
        results=named + shown,
        nextCursor=str(page.offset + len(shown)) if more else None,
        message=page.advice,
        success=True,
        scope="all" if page.everywhere else "project",
    )


def _found_view(hit: FoundThought, thought: Thought, terms: Sequence[Term]) -> dict[str, Any]:
    return present(
        sessionId=hit.session_id,
        title=hit.title,
        status=hit.status.value,
        thoughtNumber=hit.number,
        branchId=thought.branch_id,
        snippet=Words(thought.content, thought.connection_id, lambda text: snippet(text, terms)),
    )


def outline_page_view(page: OutlinePage) -> dict[str, Any]:
    reply = {
        "success": True,
        "session": session_view(page.session),
        "outline": [],
        **surroundings_view(page.surroundings),
    }
    shown = fitting(map(outline_view, page.thoughts), room_beside(reply))
    reply["outline"] = shown
    if shown and shown[-1]["thoughtNumber"] < page.last_number:
        reply["nextCursor"] = str(shown[-1]["thoughtNumber"])
    return reply


def passage_view(page: ThoughtsPage) -> dict[str, Any]:
    reply = {
        "success": True,
        "session": session_view(page.session),
        "thoughts": [piece_view(piece) for piece in page.pieces],
    }
    if any(not piece.whole for piece in page.pieces):
        reply["wholeThoughts"] = "nextCursor goes on; resource holdfast://sessions/{id}/thoughts/{n} holds one whole."
    if page.next_cursor is not None:
        reply["nextCursor"] = page.next_cursor
    return reply


def passage_size(page: ThoughtsPage) -> int:
    return size(passage_view(page))


def analysis_view(analysed: tuple[Session, Sequence[Step]]) -> dict[str, Any]:
    session, steps = analysed
    return {"success": True, "sessionId": session.id, "title": session.title, **analyze(steps)}


def changed_view(session: Session, **more: str) -> dict[str, Any]:
    return {"success": True, "session": session_view(session), **more}


def deleted_view(session: Session) -> dict[str, Any]:
    days = KEEP_DELETED_MS // 86_400_000
    return changed_view(session, message=f"Deleted; operation restore brings it back for {days} days.")


def surroundings_view(around: Surroundings) -> dict[str, Any]:
    links = [present(sessionId=one.id, title=one.title, mcpRootUri=one.root_uri) for one in around.links]
    return present(
        branches=fitting(map(branch_view, around.branches), ROOM_FOR_BRANCHES),
        links=fitting(links, ROOM_FOR_LINKS) or None,
        linkedRoots=list(around.roots) or None,
    )


# -- sizes ------------------------------------------------------------------------------------------------------------


def room_beside(reply: Any) -> int:
    """Return how many characters of entries fit into a reply beside what is already in it."""
    return max(LEAST_ROOM, REPLY_CHARACTERS - size(reply))


def fitting(entries: Iterable[dict[str, Any]], budget: int) -> list[dict[str, Any]]:
    """Take entries while there is room, at least the first one."""
    taken: list[dict[str, Any]] = []
    for entry in entries:
        budget -= size(entry)
        if budget < 0 and taken:
            break
        taken.append(entry)
    return taken
