"""Messages that wait for the owner's word: what is held, and letting it go to its agent or removing it."""
# ruff: noqa: S608 - the texts are put together from constants alone

from __future__ import annotations

import hashlib
from typing import Any

from holdfast.bridge.errors import UnknownMessage
from holdfast.bridge.model import MAX_PENDING, TTL_MS, Priority
from holdfast.bridge.queries import NEXT_SEQ, is_full
from holdfast.errors import BadInput, Busy
from holdfast.store import Row, Tx
from holdfast.teams.fields import shown
from holdfast.times import iso

RELEASED = "archive, released"
MOST_LISTED = 100


def held(tx: Tx, target: str | None, most: int = MOST_LISTED) -> dict[str, Any]:
    """What waits for the owner's word, the oldest first and whole: what is released is what was shown."""
    where = "" if target is None else " AND target = :target"
    given = {} if target is None else {"target": target}
    rows = tx.all(
        "SELECT id, target, sender, priority, text, created_at FROM bridge_messages"
        f" WHERE status = 'held'{where} ORDER BY row_id LIMIT :limit",
        limit=most + 1,
        **given,
    )
    listed = [
        {**row, "priority": Priority(row["priority"]).word, "created_at": iso(row["created_at"])} for row in rows[:most]
    ]
    return {"messages": listed, "more": len(rows) > most}


def digest_of(message: Row) -> str:
    """What stands for a held message as it was shown: for another text or sender it is another one."""
    told = [message[name] for name in ("id", "target", "sender", "priority", "text")]
    return hashlib.sha256(repr(told).encode("utf-8", "surrogatepass")).hexdigest()[:40]


def decide(tx: Tx, target: str, ids: list[str], *, drop: bool) -> dict[str, Any]:
    """Let held messages of a target wait for its agent behind those that do already, or remove them."""
    if not ids:
        raise BadInput("ids", "must name the messages", recovery="`holdfast release` lists them.")
    tx.lock(f"bridge:{target}")
    for message_id in ids:
        row = tx.one(
            "SELECT row_id, priority FROM bridge_messages WHERE id = :id AND target = :target AND status = 'held'",
            id=message_id,
            target=target,
        )
        if row is None:
            raise UnknownMessage(
                f"No message {shown(message_id)} is held for {shown(target)}.",
                recovery="`holdfast release` lists them.",
            )
        if drop:
            tx.run("DELETE FROM bridge_messages WHERE row_id = :row", row=row["row_id"])
            tx.emit("bridge.dropped", message_id, {"target": target})
            continue
        priority = Priority(row["priority"])
        if is_full(tx, target, priority):
            raise Busy(f"{MAX_PENDING} messages wait for {target} already.", recovery="Release it later.")
        tx.run(
            f"UPDATE bridge_messages SET status = 'pending', source = :source, seq = {NEXT_SEQ}, expires_at = :expires"
            " WHERE row_id = :row",
            source=RELEASED,
            target=target,
            expires=tx.now() + TTL_MS,
            row=row["row_id"],
        )
        tx.emit("bridge.queued", message_id, {"target": target, "priority": priority.word})
    return {"target": target, "ids": ids, "dropped": drop}
