"""Checks: every hash chain is recomputed, so that a lost, changed or reordered thought is found by name."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.reasoning import chain, queries
from holdfast.reasoning.model import Session
from holdfast.store import Row, Tx, register
from holdfast.store.verify import Problem

SESSIONS_AT_ONCE = 500
THOUGHTS_AT_ONCE = 50


def chain_check(tx: Tx) -> Iterator[Problem]:
    """What is wrong with the stored sessions; nothing where all is well."""
    after = ""
    while ids := queries.session_ids_after(tx, after, SESSIONS_AT_ONCE):
        for session_id in ids:
            session = queries.session(tx, session_id)
            if session is not None:
                if session.damage:
                    yield Problem(f"session {session.id}", session.damage, known=True)
                for text in _session_problems(tx, session):
                    yield Problem(f"session {session.id}", text)
        after = ids[-1]


def register_check(tx: Tx) -> Iterator[Problem]:
    """Name sessions that are missing as a whole, by the register, the count and the sum of heads."""
    head = tx.one("SELECT sessions, heads_sum FROM event_head WHERE id = 1")
    if head is None:
        return  # the check of events says that the row is missing
    named = 0
    for row in tx.all(
        "SELECT r.id, r.gone FROM session_register r LEFT JOIN sessions s ON s.id = r.id"
        " WHERE s.id IS NULL AND (r.gone IS NULL OR r.gone = :lost) ORDER BY r.id",
        lost=register.LOST,
    ):
        if row["gone"]:
            yield Problem(f"session {row['id']}", "was lost as a whole in a salvage", known=True)
        else:
            named += 1
            yield Problem(f"session {row['id']}", "is missing with all its thoughts")
    for row in tx.all(
        "SELECT s.id FROM sessions s LEFT JOIN session_register r ON r.id = s.id"
        " WHERE r.id IS NULL OR r.gone IS NOT NULL ORDER BY s.id"
    ):
        named += 1
        yield Problem(f"session {row['id']}", "is not in the register of sessions")
    registered = tx.one("SELECT count(*) AS n FROM session_register")
    missing = head["sessions"] - (registered["n"] if registered else 0)
    if missing:
        yield Problem("register", f"{missing} sessions are missing in it; their ids are not known")
    elif not named and _heads_total(tx) != head["heads_sum"]:
        yield Problem("register", "the sum of the sessions' heads is not the one that was counted")


def _heads_total(tx: Tx) -> int:
    rows = tx.all(
        "SELECT head_hash AS head FROM sessions"
        " UNION ALL SELECT hash AS head FROM session_register WHERE gone IS NOT NULL"
    )
    return register.total(row["head"] for row in rows)


def _session_problems(tx: Tx, session: Session) -> Iterator[str]:
    expected, previous, count = 1, chain.genesis(session.id), 0
    for row in _rows(tx, session.id):
        number, prev_hash, own_hash = row["number"], row.pop("prev_hash"), row.pop("hash")
        count += 1
        # Where thoughts are known to be lost, gaps and broken links are no news; a changed text still is.
        if not session.damage:
            if number != expected:
                yield f"{_missing(expected, number - 1)} missing"
            elif prev_hash != previous:
                yield f"thought {number} does not follow the thought before it"
        if chain.seal(prev_hash, queries.to_thought(row)) != own_hash:
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


def _rows(tx: Tx, session_id: str) -> Iterator[Row]:
    after = 0
    while rows := tx.all(
        f"SELECT {queries.WHOLE}, prev_hash, hash FROM thoughts"  # noqa: S608
        " WHERE session_id = :id AND number > :after ORDER BY number LIMIT :limit",
        id=session_id,
        after=after,
        limit=THOUGHTS_AT_ONCE,
    ):
        after = rows[-1]["number"]
        yield from rows
