"""Checks: every hash chain is recomputed, so that a lost, changed or reordered thought is found by name."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.reasoning import hash_chain as chain
from holdfast.reasoning.model import Session
from holdfast.reasoning.queries import hash_chain as check_queries
from holdfast.reasoning.queries import sessions
from holdfast.store import Tx
from holdfast.store.verify import Problem

SESSIONS_AT_ONCE = 500


def chain_check(tx: Tx) -> Iterator[Problem]:
    """Yield what is wrong with the stored sessions."""
    offset = 0
    while ids := sessions.session_ids(tx, offset, SESSIONS_AT_ONCE):
        for session_id in ids:
            session = sessions.session(tx, session_id)
            if session is None:
                yield Problem(f"session {session_id}", "cannot be asked for: its id is damaged")
                continue
            if session.damage:
                yield Problem(f"session {session.id}", session.damage, known=True)
            for field in sessions.damaged_fields(tx, session.id):
                yield Problem(f"session {session.id}", f"its {field} cannot be read")
            for text in _session_problems(tx, session):
                yield Problem(f"session {session.id}", text)
        offset += len(ids)


def register_check(tx: Tx) -> Iterator[Problem]:
    """Name sessions that are missing as a whole, by the register, the count and the sum of heads."""
    head = check_queries.counted(tx)
    if head is None:
        return  # the check of events says that the row is missing
    named = 0
    for session_id, lost in check_queries.missing_sessions(tx):
        if lost:
            yield Problem(f"session {session_id}", "was lost as a whole in a salvage", known=True)
        else:
            named += 1
            yield Problem(f"session {session_id}", "is missing with all its thoughts")
    for session_id in check_queries.unregistered_sessions(tx):
        named += 1
        yield Problem(f"session {session_id}", "is not in the register of sessions")
    counted, heads_sum = head
    missing = counted - check_queries.registered(tx)
    if missing:
        yield Problem("register", f"{missing} sessions are missing in it; their ids are not known")
    elif not named and check_queries.heads_total(tx) != heads_sum:
        yield Problem("register", "the sum of the sessions' heads is not the one that was counted")


def _session_problems(tx: Tx, session: Session) -> Iterator[str]:
    expected, previous, count = 1, chain.genesis(session.id), 0
    for thought, prev_hash, own_hash in check_queries.thoughts(tx, session.id):
        number = thought.number
        count += 1
        # Where thoughts are known to be lost, gaps and broken links are expected; a changed text is not.
        if not session.damage:
            if number != expected:
                yield f"{_missing(expected, number - 1)} missing"
            elif prev_hash != previous:
                yield f"thought {number} does not follow the thought before it"
        if chain.seal(prev_hash, thought) != own_hash:
            yield f"thought {number} was changed: it does not match its hash"
        expected, previous = number + 1, own_hash
    if session.damage:
        return
    if expected - 1 < session.thought_count:
        yield f"{_missing(expected, session.thought_count)} missing"
    elif count > session.thought_count:
        yield f"holds {count} thoughts, but {session.thought_count} were counted"
    elif previous != session.head_hash:
        yield "the newest thought is not the one that was recorded last"


def _missing(first: int, last: int) -> str:
    return f"thought {first} is" if first == last else f"thoughts {first}-{last} are"
