"""The register of reasoning sessions: a missing one is noticed by a count and a sum of heads, and has a name.

The count and the sum stand in the row that numbers events, which every write locks last anyway; a chain over sessions
would make PostgreSQL's writers wait for each other. A session that is forgotten leaves its id and its last hash,
without content, and both count on.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.store import Tx

DIGITS = 15
"""How many hexadecimal digits of a head count: a sum of two such numbers fits an integer of either engine."""
MODULUS = 1 << 4 * DIGITS
FORGOTTEN = "forgotten"
LOST = "lost"
"""What became of a session that is gone: its owner removed it, or damage took it and that was told."""


def share(head: str | None) -> int:
    """What a head adds to the sum; nothing where there is none."""
    try:
        return int(head[:DIGITS], 16) if head else 0
    except ValueError:  # a damaged hash: the chain's own check names it
        return 0


def enter(tx: Tx, session_id: str, head: str) -> None:
    """Register a new session. One that was forgotten here before, and came back with an archive, is there again."""
    entered = tx.run("INSERT INTO session_register (id) VALUES (:id) ON CONFLICT (id) DO NOTHING", id=session_id)
    if entered:
        tx.tally(share(head), sessions=1)
        return
    row = tx.one("SELECT hash FROM session_register WHERE id = :id", id=session_id)
    tx.run("UPDATE session_register SET gone = NULL, gone_at = NULL, hash = NULL WHERE id = :id", id=session_id)
    tx.tally(share(head) - share(row["hash"] if row else None))


def move(tx: Tx, before: str, after: str) -> None:
    """Count a session's new head in the place of the one before."""
    tx.tally(share(after) - share(before))


def leave(tx: Tx, session_id: str, head: str) -> None:
    """Leave the id and the last hash of a session that is being removed; they count as it did."""
    tx.run(
        "UPDATE session_register SET gone = :gone, gone_at = :now, hash = :head WHERE id = :id",
        gone=FORGOTTEN,
        now=tx.now(),
        head=head,
        id=session_id,
    )


def epoch(tx: Tx) -> str:
    """The name of this store; a restored one has another."""
    row = tx.one("SELECT epoch FROM event_head WHERE id = 1")
    return str(row["epoch"]) if row else ""


def total(heads: Iterable[str | None]) -> int:
    """The sum of all these heads."""
    return sum(map(share, heads)) % MODULUS
