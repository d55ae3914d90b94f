"""Updates: what a target's followers are told; each query a function of a transaction."""
# ruff: noqa: S608 - the texts are put together from constants alone

from __future__ import annotations

import json
from collections.abc import Sequence

from holdfast.bridge.model import Outcome, Restart, Update, UpdateKind
from holdfast.store import Row, Tx
from holdfast.store.events import to_json

LATEST_PROGRESS = (
    " AND kind <> 'adopted' AND (kind <> 'progress' OR NOT EXISTS (SELECT 1 FROM bridge_updates AS later"
    " WHERE later.target = bridge_updates.target AND later.seq > bridge_updates.seq AND later.kind = 'progress'"
    " AND later.message_id = bridge_updates.message_id))"
)
"""What a chat is sent: if it has not seen several statuses of a message, only the last."""
QUESTION = (
    "(SELECT text FROM bridge_messages AS m"
    " WHERE m.id = bridge_updates.message_id AND m.target = bridge_updates.target)"
)
OF_SENDER = (
    " AND kind IN ('reply', 'dead_letter', 'expired', 'cancelled') AND EXISTS (SELECT 1 FROM bridge_messages AS m"
    " WHERE m.id = bridge_updates.message_id AND m.target = bridge_updates.target AND m.sender = :sender)"
)


def add(
    tx: Tx,
    target: str,
    kind: UpdateKind,
    content: str,
    message_id: str | None = None,
    *,
    outcome: Outcome | None = None,
    restart: Restart | None = None,
    buttons: Sequence[tuple[str, str]] = (),
    chat_only: bool = False,
) -> None:
    """Add an update for the target's followers, numbered in the order of commits."""
    data: Row = {}
    if outcome is not None:
        data["outcome"] = outcome.value
    if restart is not None:
        data |= {"old": restart.old, "new": restart.new}
    if buttons:
        data["buttons"] = buttons
    tx.lock(f"bridge:{target}")
    tx.run(
        "INSERT INTO bridge_updates (target, seq, kind, message_id, content, data, chat_only, created_at)"
        " VALUES (:target, (SELECT coalesce(max(seq), 0) + 1 FROM bridge_updates WHERE target = :target), :kind,"
        " :message, :content, :data, :chat_only, :now)",
        target=target,
        kind=kind.value,
        message=message_id,
        content=content,
        data=to_json(data),
        chat_only=chat_only,
        now=tx.now(),
    )
    tx.emit("bridge.update", target, {"kind": kind.value})


def told(
    tx: Tx,
    target: str,
    *,
    after: int,
    since: int | None = None,
    limit: int,
    chat: bool = False,
    sent_by: str | None = None,
    questions: bool = False,
) -> list[Update]:
    """Updates after a number or since a time, oldest first; with `sent_by` only those of a sender's messages."""
    rows = tx.all(
        "SELECT seq, target, kind, message_id, content, created_at, data"
        + (f", {QUESTION} AS question" if questions else "")
        + " FROM bridge_updates WHERE target = :target AND seq > :after AND created_at >= :since"
        + (LATEST_PROGRESS if chat else " AND chat_only = 0")
        + ("" if sent_by is None else OF_SENDER)
        + " ORDER BY seq LIMIT :limit",
        target=target,
        after=after,
        since=since or 0,
        **({} if sent_by is None else {"sender": sent_by}),
        limit=limit,
    )
    return [_update(row) for row in rows]


def _update(row: Row) -> Update:
    data = json.loads(row.pop("data"))
    return Update(
        **row,
        outcome=data.get("outcome"),
        restart=Restart(row["target"], data["old"], data["new"]) if "new" in data else None,
        archive=data.get("archive"),
        buttons=tuple((str(label), str(action)) for label, action in data.get("buttons", ())),
    )
