"""Register of reasoning sessions: a count and a sum of heads reveal a missing session, and the register names it.

The count and the sum are in the row that numbers events, which every write locks last anyway; a chain over sessions
would make PostgreSQL's writers wait for each other. A forgotten session leaves its id and its last hash, without
content, and both still count.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.store import Tx

DIGITS = 15
"""Hexadecimal digits of a head that are summed: the sum of two such numbers fits an integer on either engine."""
MODULUS = 1 << 4 * DIGITS
FORGOTTEN = "forgotten"
LOST = "lost"
"""Why a session is gone: its owner removed it, or it was lost to damage that was reported."""


def share(head: str | None) -> int:
    """Return what a head adds to the sum; 0 for None."""
    try:
        return int(head[:DIGITS], 16) if head else 0
    except ValueError:  # a damaged hash: the chain's own check names it
        return 0


def enter(tx: Tx, session_id: str, head: str) -> None:
    """Register a new session, or one that was forgotten and has come back with an archive."""
    entered = tx.run("INSERT INTO session_register (id) VALUES (:id) ON CONFLICT (id) DO NOTHING", id=session_id)
    if entered:
        tx.tally(share(head), sessions=1)
        return
    row = tx.one("SELECT hash FROM session_register WHERE id = :id", id=session_id)
    tx.run("UPDATE session_register SET gone = NULL, gone_at = NULL, hash = NULL WHERE id = :id", id=session_id)
    tx.tally(share(head) - share(row["hash"] if row else None))


def move(tx: Tx, before: str, after: str) -> None:
    """Replace a session's previous head in the sum with its new one."""
    tx.tally(share(after) - share(before))


def leave(tx: Tx, session_id: str, head: str) -> None:
    """Keep the id and the last hash of a session that is being removed; they count as it did."""
    tx.run(
        "UPDATE session_register SET gone = :gone, gone_at = :now, hash = :head WHERE id = :id",
        gone=FORGOTTEN,
        now=tx.now(),
        head=head,
        id=session_id,
    )


def epoch(tx: Tx) -> str:
    """Return the epoch of this store; a restored store has a new one."""
    row = tx.one("SELECT epoch FROM event_head WHERE id = 1")
    return str(row["epoch"]) if row else ""


def total(heads: Iterable[str | None]) -> int:
    """Return the sum of these heads."""
    return sum(map(share, heads)) % MODULUS
