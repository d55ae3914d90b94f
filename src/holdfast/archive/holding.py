"""What an archive would have agents do waits here for the owner's word.

A message, an unseen notice and a task from elsewhere become messages with the status `held`. Whoever hands messages out
asks for those that are `pending`, so none of them reaches an agent before the owner releases it.
"""
# ruff: noqa: S608 - the texts are put together from constants alone

from __future__ import annotations

import hashlib
from typing import Any

from holdfast.bridge.errors import UnknownMessage
from holdfast.bridge.model import ADOPTED, MAX_PENDING, TTL_MS, Priority, Status, fingerprint
from holdfast.bridge.queries import NEXT_SEQ, is_full
from holdfast.errors import BadInput, Busy
from holdfast.store import Row, Tx
from holdfast.teams.fields import shown
from holdfast.times import iso

RELEASED = "archive, released"
LONGEST_SENDER = 100
MOST_LISTED = 100
OPEN = (Status.PENDING.value, Status.LEASED.value, Status.HELD.value)


def adopted_message(row: Row, origin: str) -> Row:
    """A message as it is kept here: what is over stays so, what is not waits for the owner."""
    waits = {"status": Status.HELD.value, "way": None, "attempts": 0} if row["status"] in OPEN else {}
    return {**row, **waits, "source": ADOPTED, "sender": _sender(row["sender"], origin)}


def from_notice(row: Row, origin: str) -> Row:
    """A notice that nobody there had seen, as a message that waits for the owner."""
    text = f"A notice from team {shown(row['from_team'] or 'outside')}:\n{row['text']}"
    return _held(notice_id(row), row["to_team"], text, row["created_at"], f"team {row['from_team']}", origin)


def from_task(row: Row, origin: str) -> Row:
    """What an agent there was working on, as a message that waits for the owner."""
    step = f"\nThe last completed step was: {row['last_completed_step']}" if row["last_completed_step"] else ""
    text = f"An agent elsewhere was working on this:\n{row['current_task']}{step}"
    return _held(task_id(row), row["target"], text, row["updated_at"], "its agent", origin)


def notice_id(row: Row) -> str:
    """The id of the message that a notice becomes, the same each time."""
    return "notice-" + _digest(row["to_team"], row["id"])


def task_id(row: Row) -> str:
    """The id of the message that a task becomes, the same each time."""
    return "task-" + _digest(row["target"], row["current_task"], row["last_completed_step"], row["updated_at"])


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _held(message_id: str, target: str, text: str, at: int, sender: str, origin: str) -> Row:
    return {
        "id": message_id,
        "target": target,
        "text": text,
        "fingerprint": fingerprint(text),
        "sender": _sender(sender, origin),
        "source": ADOPTED,
        "priority": int(Priority.NORMAL),
        "status": Status.HELD.value,
        "attempts": 0,
        "created_at": at,
        "expires_at": at,
    }


def _sender(there: str, origin: str) -> str:
    """Nobody here: what a message says of its sender was written elsewhere."""
    return f'{origin}, adopted; there from "{shown(there, LONGEST_SENDER)}"'


# -- the owner's word -------------------------------------------------------------------------------------------------


def held(tx: Tx, target: str | None) -> dict[str, Any]:
    """What waits for the owner's word, the oldest first and whole: what is released is what was shown."""
    where = "" if target is None else " AND target = :target"
    given = {} if target is None else {"target": target}
    rows = tx.all(
        "SELECT id, target, sender, priority, text, created_at FROM bridge_messages"
        f" WHERE status = 'held'{where} ORDER BY row_id LIMIT :limit",
        limit=MOST_LISTED + 1,
        **given,
    )
    listed = [
        {**row, "priority": Priority(row["priority"]).word, "created_at": iso(row["created_at"])}
        for row in rows[:MOST_LISTED]
    ]
    return {"messages": listed, "more": len(rows) > MOST_LISTED}


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
