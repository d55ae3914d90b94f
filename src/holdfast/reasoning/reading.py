"""Reading a session: its last thoughts, its structure, a range of whole thoughts, one thought."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.errors import BadInput, NotFound
from holdfast.reasoning.model import Branch, Piece, Session, Thought
from holdfast.reasoning.queries import sessions
from holdfast.store import Tx
from holdfast.text.masking import Words, mask_for

if TYPE_CHECKING:
    from holdfast.reasoning.results import OutlinePage, Surroundings, ThoughtsPage

    Measure = Callable[[ThoughtsPage], int]
    """Returns the characters that a page takes where it is shown."""

CONTEXT_CUT = 2000
"""How many characters of a thought the context shows."""
MARGIN = 1000
"""Characters after the cut that are searched for secrets too, so that no half of one is shown."""
OUTLINE_LIMIT = 200
OUTLINE_CUT = 400
BRANCHES_SHOWN = 100
LINKS_SHOWN = 50
ROOTS_SHOWN = 10
EXPORT_BRANCHES = 10_000
AT_ONCE = 10
"""Whole thoughts fetched together: at most 10 MiB."""
LEAST_ROOM = 4_000
"""The least characters that a page has for its thoughts."""


def newest_first(tx: Tx, session: Session, before: int, limit: int) -> Sequence[Thought]:
    """Return the session's last thoughts below a number, a little longer than the context shows them."""
    return sessions.thoughts_before(tx, session.id, before, limit, CONTEXT_CUT + MARGIN)


def surroundings(tx: Tx, session: Session) -> Surroundings:
    """Return the branches of a session, and the sessions and roots it is linked to."""
    from holdfast.reasoning.results import Surroundings

    return Surroundings(
        branches=tuple(sessions.branches(tx, session.id, BRANCHES_SHOWN)) if session.branch_count else (),
        links=tuple(sessions.links(tx, session.id, LINKS_SHOWN)),
        roots=tuple(sessions.linked_roots(tx, session.id, ROOTS_SHOWN)),
    )


def outline(tx: Tx, session: Session, limit: int, after: int) -> OutlinePage:
    from holdfast.reasoning.results import OutlinePage

    end = session_end(tx, session)
    thoughts = sessions.thoughts(tx, session.id, after + 1, end, limit, cut=OUTLINE_CUT)
    return OutlinePage(session, tuple(thoughts), surroundings(tx, session), end)


def checked_range(tx: Tx, session: Session, first: int | None, last: int | None) -> tuple[int, int]:
    """Check the requested range; `first` alone reads to the end, `last` alone is one thought."""
    end = session_end(tx, session)
    if first is None:
        first = last
    if last is None:
        last = end
    if first is None or not 1 <= first <= last <= end:
        raise BadInput(
            "from/to",
            f"must be a range within 1-{end}" if end else "names thoughts, and the session has none yet",
        )
    return first, last


def thoughts_page(
    tx: Tx,
    session: Session,
    reader: str | None,
    start: tuple[int, int],
    last: int,
    *,
    limit: int,
    room: int,
    measure: Measure,
    branches: Sequence[Branch] = (),
) -> ThoughtsPage:
    """Return whole thoughts as the reader may see them, as many as fit into `room`; a long one comes in pieces.

    `start` is the first thought, and how many of its characters were on the page before.
    """
    from holdfast.reasoning.results import ThoughtsPage

    by_id = {branch.id: branch for branch in branches}

    def page_of(pieces: Sequence[Piece]) -> ThoughtsPage:
        ids = dict.fromkeys(piece.thought.branch_id for piece in pieces)
        return ThoughtsPage(session, tuple(by_id[one] for one in ids if one in by_id), tuple(pieces))

    frame = measure(page_of([]))
    thoughts = (masked_thought(thought, reader) for thought in whole(tx, session.id, start[0], last))
    pieces, following = filling(
        thoughts, start[1], limit, max(LEAST_ROOM, room - frame), lambda piece: measure(page_of([piece])) - frame
    )
    return replace(page_of(pieces), next_cursor=following)


def single(tx: Tx, session: Session, number: int) -> Thought:
    thoughts = sessions.thoughts(tx, session.id, number, number, 1)
    if not thoughts:
        raise NotFound(
            f"Thought {number} of session {session.id} not found", recovery=f"(It has 1-{session_end(tx, session)}.)"
        )
    return thoughts[0]


def masked_thought(thought: Thought, reader: str | None) -> Thought:
    """Mask the secrets of a thought, unless the reader's own connection wrote them."""
    return replace(thought, content=Words(thought.content, thought.connection_id).mask_for(reader))


def masked_session(session: Session) -> Session:
    """Mask the secrets in a title and tags for every reader: their author is not recorded."""
    tags = tuple(str(mask_for(tag, None)) for tag in session.tags)
    return replace(session, title=str(mask_for(session.title, None)), tags=tags)


def filling(
    thoughts: Iterable[Thought], start: int, limit: int, room: int, cost: Callable[[Piece], int]
) -> tuple[list[Piece], str | None]:
    """Fill a page; return it with the cursor of the next. `start` characters of the first were on the previous page."""
    taken: list[Piece] = []
    for thought in thoughts:
        if len(taken) == limit:
            return taken, f"{thought.number}.0"
        piece = Piece(replace(thought, content=thought.content[start:]), start, len(thought.content))
        start = 0
        spent = cost(piece)
        if spent > room:
            if taken:
                return taken, f"{thought.number}.0"
            piece = _cut(piece, room, cost)
            if piece.end < piece.characters:
                return [piece], f"{thought.number}.{piece.end}"
        room -= spent
        taken.append(piece)
    return taken, None


def _cut(piece: Piece, room: int, cost: Callable[[Piece], int]) -> Piece:
    length = min(len(piece.thought.content), room)
    while length > 1:
        cut = replace(piece, thought=replace(piece.thought, content=piece.thought.content[:length]))
        if cost(cut) <= room:
            return cut
        length = length * 3 // 4
    return piece


def session_end(tx: Tx, session: Session) -> int:
    return sessions.highest_number(tx, session.id) if session.damage else session.thought_count


def whole(tx: Tx, session_id: str, first: int, last: int) -> Iterator[Thought]:
    """Yield whole thoughts of a range, fetched a few at a time."""
    while first <= last:
        batch = sessions.thoughts(tx, session_id, first, last, AT_ONCE)
        if not batch:
            return
        yield from batch
        first = batch[-1].number + 1
