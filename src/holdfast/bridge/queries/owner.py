"""The SQL behind the owner's actions on a queue: listing, releasing held messages, requeuing ended ones."""
# ruff: noqa: S608 - the texts are put together from constants alone

from __future__ import annotations

from collections.abc import Sequence

from holdfast.bridge.model import TTL_MS, Message, Priority, Status
from holdfast.bridge.queries.queue import MESSAGE, NEXT_SEQ
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx
from holdfast.store.containing import containing

LISTED = f"{MESSAGE}, reply, created_at, finished_at"
RELEASED = "archive, released"


@dataclass(slots=True)
class ListedMessage(Message):
    """A message with its times and its outcome."""

    reply: str | None
    created_at: int
    finished_at: int | None


@dataclass(frozen=True, slots=True)
class HeldMessage:
    row_id: int
    id: str
    target: str
    sender: str
    priority: Priority
    text: str
    created_at: int


SEARCHED = 20_000
"""How many of the newest messages a search covers."""


def search(tx: Tx, words: Sequence[str], limit: int) -> list[ListedMessage]:
    """Return the newest messages with all of these words in their text or reply."""
    where, params = containing(tx.engine, ("text", "reply"), words)
    rows = tx.all(
        f"SELECT {LISTED} FROM bridge_messages"
        f" WHERE row_id > (SELECT coalesce(max(row_id), 0) - :searched FROM bridge_messages) AND {where}"
        " ORDER BY row_id DESC LIMIT :limit",
        searched=SEARCHED,
        limit=limit,
        **params,
    )
    return [ListedMessage(**row) for row in rows]


def held(tx: Tx, target: str | None, limit: int, message_id: str | None = None) -> list[HeldMessage]:
    """Held messages, oldest first; of one target, or with one id."""
    where = ("" if target is None else " AND target = :target") + ("" if message_id is None else " AND id = :id")
    sql = (
        "SELECT row_id, id, target, sender, priority, text, created_at FROM bridge_messages"
        f" WHERE status = 'held'{where} ORDER BY row_id LIMIT :limit"
    )
    rows = tx.all(sql, limit=limit, target=target, id=message_id)
    return [HeldMessage(**{**row, "priority": Priority(row["priority"])}) for row in rows]


def drop(tx: Tx, row_id: int) -> int:
    return tx.run("DELETE FROM bridge_messages WHERE row_id = :row", row=row_id)


def release(tx: Tx, target: str, row_id: int) -> None:
    """Queue a held message behind those already waiting."""
    sql = (
        f"UPDATE bridge_messages SET status = 'pending', source = :source, seq = {NEXT_SEQ}, expires_at = :expires"
        " WHERE row_id = :row"
    )
    tx.run(sql, source=RELEASED, target=target, expires=tx.now() + TTL_MS, row=row_id)


def listed(tx: Tx, targets: Sequence[str] | None, status: Status | None, limit: int) -> list[ListedMessage]:
    """Messages of these targets, or of all, newest first."""
    given: dict[str, str] = {}
    # As a constant, because the indexes of what is open and of dead letters are of these states alone.
    conditions = [] if status is None else [f"status = '{status.value}'"]
    if targets is not None:
        names = {f"target{number}": target for number, target in enumerate(targets)}
        conditions.append(f"target IN ({', '.join(f':{name}' for name in names)})" if names else "1 = 0")
        given |= names
    where = " AND ".join(conditions) or "1 = 1"
    # The sign keeps SQLite from reading all messages in their order, of which few are dead letters.
    order = "+row_id" if status is Status.DEAD else "row_id"
    rows = tx.all(
        f"SELECT {LISTED} FROM bridge_messages WHERE {where} ORDER BY {order} DESC LIMIT :limit", limit=limit, **given
    )
    return [ListedMessage(**row) for row in rows]


def unfinished(tx: Tx, target: str, limit: int) -> list[ListedMessage]:
    """Return a target's messages: in progress, waiting in order of delivery, and dead letters."""
    rows = tx.all(
        f"SELECT {LISTED} FROM bridge_messages WHERE target = :target AND status IN ('leased', 'pending', 'dead')"
        " ORDER BY CASE status WHEN 'leased' THEN 0 WHEN 'pending' THEN 1 ELSE 2 END, priority DESC, seq LIMIT :limit",
        target=target,
        limit=limit,
    )
    return [ListedMessage(**row) for row in rows]


def in_row(tx: Tx, target: str, row_id: int) -> str | None:
    """Return the id of a target's message, by the row it is in."""
    row = tx.one("SELECT id FROM bridge_messages WHERE row_id = :row AND target = :target", row=row_id, target=target)
    return None if row is None else str(row["id"])


def named(tx: Tx, message_id: str) -> list[ListedMessage]:
    """The messages with an id, at most one per target."""
    rows = tx.all(f"SELECT {LISTED} FROM bridge_messages WHERE id = :id ORDER BY row_id", id=message_id)
    return [ListedMessage(**row) for row in rows]


def requeue(tx: Tx, message: ListedMessage) -> None:
    """Requeue an ended message; one attempt stays counted, so that the next taker learns it was handed out before."""
    tx.run(
        f"UPDATE bridge_messages SET status = 'pending', seq = {NEXT_SEQ}, attempts = :attempts, expires_at = :expires,"
        " lease_by = NULL, lease_until = NULL, way = NULL, outcome = NULL, reply = NULL, finished_at = NULL"
        " WHERE row_id = :row",
        target=message.target,
        attempts=min(message.attempts, 1),
        expires=tx.now() + message.expires_at - message.created_at,
        row=message.row_id,
    )
    tx.emit("bridge.queued", message.id, {"target": message.target, "priority": Priority(message.priority).word})
