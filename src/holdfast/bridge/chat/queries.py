"""The SQL of chats: what was received, what was sent, who holds an account; each a function of a transaction."""

from __future__ import annotations

from holdfast.bridge.model import Task, Update
from holdfast.bridge.queries import tasks, updates
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx

NEW_CHAT_MS = 3_600_000
"""A newly linked chat gets the updates of this period, not the whole past."""
KEPT_MS = 8 * 24 * 3_600_000
"""How long a received number is remembered; Telegram itself forgets after a day."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a transport has sent a target's updates."""

    sent_seq: int
    sending_seq: int | None
    """The update that was sent last; if it is after `sent_seq`, it is unknown whether it arrived."""
    attempts: int
    wait_ms: int
    """How long to wait after a failure."""
    failure: str | None


@dataclass(frozen=True, slots=True)
class Unsent:
    """The next update of a target, and what is needed to show it."""

    update: Update
    task: Task | None
    progress: Progress


@dataclass(frozen=True, slots=True)
class Undelivered:
    transport: str
    target: str
    failure: str


def receive(tx: Tx, transport: str, account: str, number: int) -> bool:
    """Note an incoming update; False if it was received before."""
    sql = (
        "INSERT INTO bridge_received (transport, account, update_id, at) VALUES (:transport, :account, :number, :now)"
        " ON CONFLICT (transport, account, update_id) DO NOTHING"
    )
    changed = tx.run(sql, transport=transport, account=account, number=number, now=tx.now())
    return changed > 0


def was_received(tx: Tx, transport: str, account: str, number: int) -> bool:
    sql = (
        "SELECT 1 AS known FROM bridge_received"
        " WHERE transport = :transport AND account = :account AND update_id = :number"
    )
    row = tx.one(sql, transport=transport, account=account, number=number)
    return row is not None


def forget_received(tx: Tx) -> int:
    return tx.run("DELETE FROM bridge_received WHERE at < :before", before=tx.now() - KEPT_MS)


def is_behind(tx: Tx, transport: str, target: str) -> bool:
    found = tx.one(
        "SELECT 1 AS found FROM bridge_updates WHERE target = :target AND kind <> 'adopted'"
        " AND seq > coalesce((SELECT sent_seq"
        " FROM bridge_chats WHERE transport = :transport AND target = :target), 0) LIMIT 1",
        transport=transport,
        target=target,
    )
    return found is not None


def begin(tx: Tx, transport: str, target: str) -> None:
    """Add a target's chat to a transport; it starts with recent updates."""
    sql = (
        "INSERT INTO bridge_chats (transport, target, sent_seq, attempts, next_at)"
        " SELECT :transport, :target, coalesce(max(seq), 0), 0, 0 FROM bridge_updates"
        " WHERE target = :target AND created_at < :since"
        " ON CONFLICT (transport, target) DO NOTHING"
    )
    tx.run(sql, transport=transport, target=target, since=tx.now() - NEW_CHAT_MS)


def progress(tx: Tx, transport: str, target: str) -> Progress:
    row = tx.one(
        "SELECT sent_seq, sending_seq, attempts, next_at, failure FROM bridge_chats"
        " WHERE transport = :transport AND target = :target",
        transport=transport,
        target=target,
    )
    if row is None:
        return Progress(0, None, 0, 0, None)
    wait = max(0, int(row["next_at"]) - tx.now())
    return Progress(row["sent_seq"], row["sending_seq"], row["attempts"], wait, row["failure"])


def unsent(tx: Tx, transport: str, target: str) -> Unsent | None:
    so_far = progress(tx, transport, target)
    found = updates.told(tx, target, after=so_far.sent_seq, limit=1, chat=True)
    return Unsent(found[0], tasks.of_target(tx, target), so_far) if found else None


def sending(tx: Tx, transport: str, target: str, seq: int) -> None:
    sql = "UPDATE bridge_chats SET sending_seq = :seq WHERE transport = :transport AND target = :target"
    tx.run(sql, seq=seq, transport=transport, target=target)


def sent(tx: Tx, transport: str, target: str, seq: int, failure: str | None = None) -> None:
    """Note that an update arrived or, with the reason, never will."""
    sql = (
        "UPDATE bridge_chats SET sent_seq = :seq, sending_seq = NULL, attempts = 0, next_at = 0, failure = :failure"
        " WHERE transport = :transport AND target = :target"
    )
    tx.run(sql, seq=seq, failure=failure, transport=transport, target=target)
    if failure is not None:
        tx.emit("bridge.undeliverable", target, {"transport": transport, "seq": seq, "reason": failure})


def failed(tx: Tx, transport: str, target: str, failure: str, pause_ms: int, *, uncertain: bool) -> None:
    """Note a failed send and pause the chat; `uncertain` if it may have arrived."""
    tx.run(
        "UPDATE bridge_chats SET attempts = attempts + 1, failure = :failure, next_at = :next_at,"
        " sending_seq = CASE WHEN :uncertain = 1 THEN sending_seq ELSE NULL END"
        " WHERE transport = :transport AND target = :target",
        failure=failure,
        next_at=tx.now() + pause_ms,
        uncertain=int(uncertain),
        transport=transport,
        target=target,
    )


def rest(tx: Tx, transport: str, target: str, pause_ms: int) -> None:
    """Pause a chat although no send of this target failed."""
    sql = (
        "UPDATE bridge_chats SET next_at = :next_at"
        " WHERE transport = :transport AND target = :target AND next_at < :next_at"
    )
    tx.run(sql, next_at=tx.now() + pause_ms, transport=transport, target=target)


def undelivered(tx: Tx) -> list[Undelivered]:
    rows = tx.all(
        "SELECT transport, target, failure FROM bridge_chats WHERE failure IS NOT NULL ORDER BY transport, target"
    )
    return [Undelivered(**row) for row in rows]
