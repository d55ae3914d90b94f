"""Recording: a new session, and the next thought of a session, inside the caller's transaction."""

from __future__ import annotations

from holdfast.identity.project import Root
from holdfast.lazy_dataclass import dataclass
from holdfast.reasoning import hash_chain
from holdfast.reasoning.model import (
    Draft,
    Session,
    Status,
    Thought,
    branch_start,
    check_revision,
    expected_total,
    next_number,
)
from holdfast.reasoning.queries import projects, sessions
from holdfast.store import Tx, register


@dataclass(frozen=True, slots=True)
class Recorded:
    """The number of a stored thought, and how many the session holds now."""

    number: int
    total: int | None
    count: int
    """How many thoughts the session holds."""
    duplicate: bool
    """Whether the caller had sent it right before."""


def create_session(
    tx: Tx, root: Root | None, title: str, tags: tuple[str, ...] = (), domain: str | None = None
) -> Session:
    now = used = tx.now()
    if root is not None:
        projects.know(tx, root)
        # Sessions created within one millisecond still have an order, the newer one last.
        used = max(now, sessions.newest_use(tx, root.uri) + 1)
    session_id = tx.new_id()
    session = Session(
        id=session_id,
        title=title,
        tags=tags,
        domain=domain,
        status=Status.ACTIVE,
        pinned=False,
        root_uri=root.uri if root else None,
        project_key=root.key if root else None,
        thought_count=0,
        branch_count=0,
        head_hash=hash_chain.genesis(session_id),
        damage=None,
        created_at=now,
        updated_at=used,
    )
    sessions.add_session(tx, session)
    register.enter(tx, session.id, session.head_hash)
    tx.emit("reasoning.session_created", session.id)
    return session


def record(tx: Tx, session: Session, draft: Draft, connection_id: str | None) -> Recorded:
    """Add a thought to a session whose lock the transaction holds."""
    number = next_number(session, sessions.highest_number(tx, session.id) if session.damage else 0)
    last = number - 1
    if last and sessions.is_repetition(tx, session.id, last, draft.content, draft.requested_number, draft.branch_id):
        return Recorded(last, expected_total(draft, last), session.thought_count, duplicate=True)
    check_revision(draft, last)
    known = sessions.branch(tx, session.id, draft.branch_id) if draft.branch_id else None
    start = branch_start(draft, known, last)
    thought = Thought(
        session_id=session.id,
        number=number,
        content=draft.content,
        next_needed=draft.next_needed,
        total=expected_total(draft, number),
        revises=draft.revises,
        is_revision=draft.is_revision or draft.revises is not None,
        branch_id=draft.branch_id,
        branch_from=start,
        needs_more=draft.needs_more,
        requested_number=draft.requested_number,
        connection_id=connection_id,
        created_at=tx.now(),
    )
    own_hash = hash_chain.seal(session.head_hash, thought)
    sessions.add_thought(tx, thought, session.head_hash, own_hash)
    if draft.branch_id is not None and start is not None:
        sessions.extend_branch(tx, session.id, draft.branch_id, start)
    register.move(tx, session.head_hash, own_hash)
    sessions.advance(tx, session.id, own_hash, new_branches=int(draft.branch_id is not None and known is None))
    tx.emit(
        "reasoning.thought_added",
        session.id,
        {"number": number} if draft.branch_id is None else {"number": number, "branch": draft.branch_id},
    )
    return Recorded(number, thought.total, session.thought_count + 1, duplicate=False)


def reopen(tx: Tx, session: Session) -> None:
    sessions.set_status(tx, session.id, Status.ACTIVE)
    tx.emit("reasoning.session_restored", session.id, {"from": session.status.value})
