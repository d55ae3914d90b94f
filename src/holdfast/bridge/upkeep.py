"""What is dropped: what was done long ago, a part at a time, and all of a target whose project is forgotten."""
# ruff: noqa: S608 - the texts are put together from constants alone

from __future__ import annotations

from functools import partial

from holdfast.store import Store, Tx

AT_ONCE = 500


async def forget_old(store: Store, keep_ms: int) -> int:
    """Drop messages that were done, and what was told of a target, so long ago; how many rows there were.

    Whatever waits stays, and whatever ended undone; and the newest of both, so that numbers go on and no cursor points
    behind what comes next.
    """
    dropped = 0
    while rows := await store.read(lambda tx: _done(tx, tx.now() - keep_ms)):
        dropped += await store.write(lambda tx: _drop_messages(tx, rows))
    for target, last in await store.read(lambda tx: _told(tx, tx.now() - keep_ms)):
        while some := await store.write(partial(_drop_updates, target=target, last=last)):
            dropped += some
    return dropped


def _done(tx: Tx, before: int) -> list[int]:
    rows = tx.all(
        "SELECT row_id FROM bridge_messages AS m WHERE status = 'done' AND finished_at < :before"
        " AND seq < (SELECT max(seq) FROM bridge_messages WHERE target = m.target) ORDER BY row_id LIMIT :limit",
        before=before,
        limit=AT_ONCE,
    )
    return [row["row_id"] for row in rows]


def _drop_messages(tx: Tx, rows: list[int]) -> int:
    return sum(tx.run("DELETE FROM bridge_messages WHERE row_id = :row", row=row) for row in rows)


def _told(tx: Tx, before: int) -> list[tuple[str, int]]:
    """The targets of which something was told before, and up to which number."""
    rows = tx.all(
        "SELECT target, max(seq) AS newest, max(CASE WHEN created_at < :before THEN seq END) AS last"
        " FROM bridge_updates GROUP BY target ORDER BY target",
        before=before,
    )
    return [(row["target"], min(row["last"], row["newest"] - 1)) for row in rows if row["last"] is not None]


def _drop_updates(tx: Tx, target: str, last: int) -> int:
    return tx.run(
        "DELETE FROM bridge_updates WHERE target = :target AND seq IN"
        " (SELECT seq FROM bridge_updates WHERE target = :target AND seq <= :last ORDER BY seq LIMIT :limit)",
        target=target,
        last=last,
        limit=AT_ONCE,
    )


def forget(tx: Tx, target: str) -> int:
    """Remove a target's queue and all that happened there; how many messages there were."""
    tx.lock(f"bridge:{target}")
    removed = tx.run("DELETE FROM bridge_messages WHERE target = :target", target=target)
    # How far a chat was told goes as well: the numbers of what happens next begin anew.
    for table in ("bridge_updates", "bridge_tasks", "bridge_chats", "bridge_targets", "bridge_incarnations"):
        tx.run(f"DELETE FROM {table} WHERE target = :target", target=target)
    tx.emit("bridge.forgotten", "target", {"messages": removed})
    return removed
