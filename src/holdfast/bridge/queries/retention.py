"""The SQL of retention: old messages and updates, and everything of a target. Functions of a transaction."""
# ruff: noqa: S608 - the texts are put together from constants alone

from __future__ import annotations

from holdfast.store import Tx

AT_ONCE = 500


def done(tx: Tx, before: int) -> list[int]:
    """Messages done or cancelled before that time, except the newest of each target."""
    rows = tx.all(
        "SELECT row_id FROM bridge_messages AS m WHERE status IN ('done', 'cancelled') AND finished_at < :before"
        " AND seq < (SELECT max(seq) FROM bridge_messages WHERE target = m.target) ORDER BY row_id LIMIT :limit",
        before=before,
        limit=AT_ONCE,
    )
    return [row["row_id"] for row in rows]


def drop_messages(tx: Tx, rows: list[int]) -> int:
    return sum(tx.run("DELETE FROM bridge_messages WHERE row_id = :row", row=row) for row in rows)


def told(tx: Tx, before: int) -> list[tuple[str, int]]:
    """Targets with updates before that time, and the last number of those."""
    rows = tx.all(
        "SELECT target, max(seq) AS newest, max(CASE WHEN created_at < :before THEN seq END) AS last"
        " FROM bridge_updates GROUP BY target ORDER BY target",
        before=before,
    )
    return [(row["target"], min(row["last"], row["newest"] - 1)) for row in rows if row["last"] is not None]


def drop_updates(tx: Tx, target: str, last: int) -> int:
    sql = (
        "DELETE FROM bridge_updates WHERE target = :target AND seq IN"
        " (SELECT seq FROM bridge_updates WHERE target = :target AND seq <= :last ORDER BY seq LIMIT :limit)"
    )
    return tx.run(sql, target=target, last=last, limit=AT_ONCE)


def forget(tx: Tx, target: str) -> int:
    """Remove a target's queue and updates; returns how many messages there were."""
    tx.lock(f"bridge:{target}")
    removed = tx.run("DELETE FROM bridge_messages WHERE target = :target", target=target)
    # The chats' progress is removed too, because updates are numbered from 1 again.
    for table in ("bridge_updates", "bridge_tasks", "bridge_chats", "bridge_targets", "bridge_incarnations"):
        tx.run(f"DELETE FROM {table} WHERE target = :target", target=target)
    tx.emit("bridge.forgotten", "target", {"messages": removed})
    return removed
