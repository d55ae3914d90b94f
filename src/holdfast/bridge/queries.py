"""The bridge's SQL: queue, updates, incarnations and tasks, each query a function of a transaction."""
# ruff: noqa: S608 - the texts are put together from constants alone

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from holdfast.bridge.model import (
    KEPT_FOR_STOP,
    MAX_ATTEMPTS,
    MAX_PENDING,
    SAME_TEXT_MS,
    Message,
    Outcome,
    Priority,
    Refusal,
    Restart,
    Status,
    Task,
    Update,
    UpdateKind,
    fingerprint,
    restart,
)
from holdfast.store import Row, Tx
from holdfast.store.events import to_json

MESSAGE = (
    "row_id, id, target, seq, text, sender, priority, reply_to, status, attempts, lease_by, lease_until, way, outcome,"
    " expires_at"
)
NEXT_SEQ = "(SELECT coalesce(max(seq), 0) + 1 FROM bridge_messages WHERE target = :target)"
"""The place behind everything that was ever sent to a target."""
WAITING = "(SELECT count(*) FROM bridge_messages WHERE target = :target AND status = 'pending')"
FRONT = (
    f"SELECT {MESSAGE}, 0 AS waiting FROM bridge_messages WHERE target = :target AND status = 'leased'"
    f" UNION ALL SELECT {MESSAGE}, {WAITING} FROM bridge_messages WHERE row_id = (SELECT row_id FROM bridge_messages"
    " WHERE target = :target AND status = 'pending' ORDER BY priority DESC, seq LIMIT 1)"
)
"""What is out, and what is handed out next."""
FOUND = (
    f"SELECT {MESSAGE}, {WAITING.replace(':target', 'm.target')} AS waiting FROM bridge_messages AS m WHERE id = :id"
)


def enqueue(
    tx: Tx,
    target: str,
    text: str,
    *,
    message_id: str | None,
    priority: Priority,
    sender: str,
    source: str,
    ttl_ms: int,
    reply_to: str | None,
) -> str | Refusal:
    """Put a message into a target's queue; its id, or why it is not there."""
    tx.lock(f"bridge:{target}")
    now, print_ = tx.now(), fingerprint(text)
    if message_id is None and _just_sent(tx, target, print_, now):
        return Refusal.DUPLICATE
    queued = message_id or tx.new_id()
    made = tx.run(
        "INSERT INTO bridge_messages (id, target, seq, text, fingerprint, sender, source, priority, reply_to, status,"
        f" attempts, created_at, expires_at) SELECT :id, :target, {NEXT_SEQ}, :text, :fingerprint, :sender, :source,"
        f" :priority, :reply_to, 'pending', 0, :now, :expires WHERE {WAITING} < :places"
        " ON CONFLICT (id, target) DO NOTHING",
        places=_places(priority),
        id=queued,
        target=target,
        text=text,
        fingerprint=print_,
        sender=sender,
        source=source,
        priority=int(priority),
        reply_to=reply_to,
        now=now,
        expires=now + ttl_ms,
    )
    if not made:
        return Refusal.DUPLICATE if is_known(tx, queued, target) else Refusal.FULL
    tx.emit("bridge.queued", queued, {"target": target, "priority": priority.word})
    return queued


def is_full(tx: Tx, target: str, priority: Priority) -> bool:
    """Whether a queue takes no more."""
    return waiting(tx, target) >= _places(priority)


def _places(priority: Priority) -> int:
    """How many messages may wait; a few places are kept for STOP."""
    return MAX_PENDING + (KEPT_FOR_STOP if priority is Priority.STOP else 0)


def _just_sent(tx: Tx, target: str, print_: str, now: int) -> bool:
    """Whether the same text still waits since a moment ago."""
    known = tx.one(
        "SELECT 1 AS known FROM bridge_messages WHERE target = :target AND fingerprint = :print"
        " AND status = 'pending' AND created_at > :since LIMIT 1",
        target=target,
        print=print_,
        since=now - SAME_TEXT_MS,
    )
    return known is not None


def take(tx: Tx, target: str, by: str, way: str, lease_ms: int, *, least: Priority = Priority.NORMAL) -> Message | None:
    """Lease the next message: the most urgent, then the oldest. One at a time; a STOP does not wait for its turn."""
    return hand_out(tx, front(tx, target), by, way, lease_ms, least=least)


def hand_out(
    tx: Tx, queue: Front, by: str, way: str, lease_ms: int, *, least: Priority = Priority.NORMAL
) -> Message | None:
    """Lease what comes next, if its turn has come."""
    row = queue.following
    if row is None or row["priority"] < (Priority.STOP if queue.out else least):
        return None
    lease = {"attempts": row["attempts"] + 1, "lease_by": by, "lease_until": tx.now() + lease_ms, "way": way}
    tx.run(
        "UPDATE bridge_messages SET status = 'leased', attempts = :attempts, lease_by = :lease_by, way = :way,"
        " lease_until = :lease_until WHERE row_id = :row",
        row=row["row_id"],
        **lease,
    )
    tx.emit("bridge.taken", row["id"], {"target": row["target"]})
    return Message(**{**row, "status": Status.LEASED.value, **lease})


@dataclass(frozen=True, slots=True)
class Front:
    """The front of a target's queue."""

    out: list[Message]
    """What somebody works on, oldest first."""
    following: Row | None
    """What is handed out next."""
    waiting: int
    """How many wait, with that one."""


def front(tx: Tx, target: str) -> Front:
    """What is out and what comes next, after leases that ran out came back and messages that are too old ended."""
    tx.lock(f"bridge:{target}")
    now = tx.now()
    while True:
        rows = tx.all(FRONT, target=target)
        waiting = max((row.pop("waiting") for row in rows), default=0)
        following = next((row for row in rows if row["status"] == Status.PENDING), None)
        out = _by_age(row for row in rows if row is not following)
        late = [message for message in out if (message.lease_until or 0) < now]
        for message in late:
            give_back(tx, message)
        if following is not None and following["expires_at"] < now:
            expire(tx, Message(**following))
        elif not late:
            return Front(out, following, waiting)


def finish(tx: Tx, message: Message, outcome: Outcome, reply: str | None) -> Status:
    """End a message, or put it back in its place; what it is then."""
    if outcome is Outcome.LATER:
        return give_back(tx, message)
    status = Status.DONE if outcome is Outcome.DONE else Status.FAILED
    _end(tx, message, status, outcome.value, reply)
    content = reply or ("Done." if outcome is Outcome.DONE else "It could not be done.")
    add_update(tx, message.target, UpdateKind.REPLY, content, message.id, {"outcome": outcome.value})
    return status


def give_back(tx: Tx, message: Message) -> Status:
    """A message that nobody ended waits again at its old place; handed out too often, it is a dead letter."""
    if message.attempts >= MAX_ATTEMPTS:
        _end(tx, message, Status.DEAD, None, None)
        content = f"Handed out {message.attempts} times without an end: {message.text[:200]}"
        add_update(tx, message.target, UpdateKind.DEAD_LETTER, content, message.id, {})
        return Status.DEAD
    tx.run(
        "UPDATE bridge_messages SET status = 'pending', lease_by = NULL, lease_until = NULL, way = NULL"
        " WHERE row_id = :row AND status = 'leased'",
        row=message.row_id,
    )
    tx.emit("bridge.returned", message.id, {"target": message.target})
    return Status.PENDING


def expire_old(tx: Tx, limit: int = 500) -> int:
    """Messages that nobody took in time end, whether or not somebody asks for them."""
    rows = tx.all(
        "SELECT row_id, target FROM bridge_messages WHERE status = 'pending' AND expires_at < :now"
        " ORDER BY target LIMIT :limit",
        now=tx.now(),
        limit=limit,
    )
    for row in rows:
        tx.lock(f"bridge:{row['target']}")
        # Somebody may have taken it before this transaction had the lock.
        still = tx.one(f"SELECT {MESSAGE} FROM bridge_messages WHERE row_id = :row", row=row["row_id"])
        if still is not None and still["status"] == Status.PENDING:
            expire(tx, Message(**still))
    return len(rows)


def expire(tx: Tx, message: Message) -> None:
    """A message that nobody took in time."""
    _end(tx, message, Status.EXPIRED, None, None)
    content = f"Nobody took it in time: {message.text[:200]}"
    add_update(tx, message.target, UpdateKind.EXPIRED, content, message.id, {})


def leased(tx: Tx, target: str, by: str | None = None) -> list[Message]:
    """The messages that somebody works on, oldest first; those of one taker."""
    rows = tx.all(
        f"SELECT {MESSAGE} FROM bridge_messages WHERE target = :target AND status = 'leased'"
        + (" AND lease_by = :by" if by is not None else "")
        + " ORDER BY priority DESC, seq",  # as the index has them; it is one, and seldom a STOP besides
        target=target,
        **({} if by is None else {"by": by}),
    )
    return _by_age(rows)


def _by_age(rows: Iterable[Row]) -> list[Message]:
    return sorted((Message(**row) for row in rows), key=lambda message: message.seq)


def is_known(tx: Tx, message_id: str, target: str) -> bool:
    """Whether a target ever got a message of that id."""
    sql = "SELECT 1 AS known FROM bridge_messages WHERE id = :id AND target = :target"
    return tx.one(sql, id=message_id, target=target) is not None


def find(tx: Tx, message_id: str, by: str) -> tuple[Message, int] | None:
    """A message by its id, and how many wait for its target.

    Where several targets have one of that id, the one that `by` took, else the newest."""
    rows = tx.all(FOUND, id=message_id)
    if not rows:
        return None
    row = max(rows, key=lambda row: (row["lease_by"] == by, row["row_id"]))
    waiting = row.pop("waiting")
    return Message(**row), waiting


def pending(tx: Tx, target: str, limit: int) -> list[Message]:
    """What waits, in the order it will be handed out."""
    rows = tx.all(
        f"SELECT {MESSAGE} FROM bridge_messages WHERE target = :target AND status = 'pending'"
        " ORDER BY priority DESC, seq LIMIT :limit",
        target=target,
        limit=limit,
    )
    return [Message(**row) for row in rows]


def waiting(tx: Tx, target: str) -> int:
    """How many messages wait for a target."""
    return count(tx, target, Status.PENDING)


def waiting_by_sender(tx: Tx, target: str) -> dict[str, int]:
    """How many messages of each sender wait for a target, most first."""
    rows = tx.all(
        "SELECT sender, count(*) AS n FROM bridge_messages WHERE target = :target AND status = 'pending'"
        " GROUP BY sender ORDER BY n DESC, sender",
        target=target,
    )
    return {row["sender"]: int(row["n"]) for row in rows}


def count(tx: Tx, target: str, status: Status) -> int:
    """How many messages of a target are in a state."""
    row = tx.one(
        f"SELECT count(*) AS n FROM bridge_messages WHERE target = :target AND status = '{status.value}'", target=target
    )
    return int(row["n"]) if row else 0


def forget(tx: Tx, target: str) -> int:
    """Remove a target's queue and all that happened there; how many messages there were."""
    tx.lock(f"bridge:{target}")
    removed = tx.run("DELETE FROM bridge_messages WHERE target = :target", target=target)
    # How far a chat was told goes as well: the numbers of what happens next begin anew.
    for table in ("bridge_updates", "bridge_tasks", "bridge_chats", "bridge_targets", "bridge_incarnations"):
        tx.run(f"DELETE FROM {table} WHERE target = :target", target=target)
    tx.emit("bridge.forgotten", target, {"messages": removed})
    return removed


# -- updates ----------------------------------------------------------------------------------------------------------


def add_update(
    tx: Tx,
    target: str,
    kind: UpdateKind,
    content: str,
    message_id: str | None,
    data: dict[str, Any],
    *,
    chat_only: bool = False,
) -> None:
    """Tell whoever follows a target what happened there, in the order of commits."""
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


def updates(
    tx: Tx, target: str, *, after: int, since: int | None = None, limit: int, chat: bool = False
) -> list[Update]:
    """Updates after a number or since a time, oldest first."""
    rows = tx.all(
        "SELECT seq, target, kind, message_id, content, data, chat_only, created_at FROM bridge_updates"
        " WHERE target = :target AND seq > :after AND created_at >= :since"
        + ("" if chat else " AND chat_only = 0")
        + " ORDER BY seq LIMIT :limit",
        target=target,
        after=after,
        since=since or 0,
        limit=limit,
    )
    return [Update(**{**row, "data": json.loads(row["data"]), "chat_only": bool(row["chat_only"])}) for row in rows]


# -- incarnations and tasks -------------------------------------------------------------------------------------------


def incarnation(tx: Tx, target: str) -> str | None:
    """The session that was last seen at work for a target."""
    row = tx.one(
        "SELECT i.session_id FROM bridge_targets t JOIN bridge_incarnations i ON i.row_id = t.incarnation"
        " WHERE t.target = :target",
        target=target,
    )
    return None if row is None else str(row["session_id"])


def last_seen(tx: Tx, target: str) -> int | None:
    """When an agent of the target was last heard of."""
    row = tx.one("SELECT last_seen_at FROM bridge_targets WHERE target = :target", target=target)
    return None if row is None else row["last_seen_at"]


def seen(tx: Tx, target: str, session_id: str, source: str, *, known_is_alive: bool = False) -> Restart | None:
    """An agent of the target was heard of. On a restart, what the dead one had leased comes back."""
    _begin(tx, target)
    known = incarnation(tx, target)
    found = restart(target, known, session_id, known_is_alive=known_is_alive)
    if known is None or found is not None:
        made = tx.one(
            "INSERT INTO bridge_incarnations (target, session_id, previous, source, started_at)"
            " VALUES (:target, :session, :previous, :source, :now) RETURNING row_id",
            target=target,
            session=session_id,
            previous=known,
            source=source,
            now=tx.now(),
        )
        tx.run(
            "UPDATE bridge_targets SET incarnation = :row WHERE target = :target",
            row=made["row_id"] if made else None,
            target=target,
        )
    tx.run("UPDATE bridge_targets SET last_seen_at = :now WHERE target = :target", now=tx.now(), target=target)
    if found is not None:
        for message in leased(tx, target, by=f"session:{found.old}"):
            give_back(tx, message)
        data = {"old": found.old, "new": found.new}
        add_update(tx, target, UpdateKind.SESSION_RESTART, found.content, None, data)
    return found


def task(tx: Tx, target: str) -> Task | None:
    """What the target's agent is, or was, working on."""
    row = tx.one(
        "SELECT target, session_id, current_task, current_task_id, last_completed_step, pending_messages, updated_at,"
        " decision FROM bridge_tasks WHERE target = :target",
        target=target,
    )
    return None if row is None else Task(**{**row, "pending_messages": tuple(json.loads(row["pending_messages"]))})


def save_task(tx: Tx, saved: Task) -> bool:
    """Keep what the agent is working on; False where nothing of it changed."""
    before = task(tx, saved.target)
    same = before is not None and (
        (before.current_task, before.current_task_id, before.last_completed_step, before.pending_messages)
        == (saved.current_task, saved.current_task_id, saved.last_completed_step, saved.pending_messages)
    )
    tx.run(
        "INSERT INTO bridge_tasks (target, session_id, current_task, current_task_id, last_completed_step,"
        " pending_messages, updated_at) VALUES (:target, :session, :task, :task_id, :step, :pending, :now)"
        " ON CONFLICT (target) DO UPDATE SET session_id = excluded.session_id, current_task = excluded.current_task,"
        " current_task_id = excluded.current_task_id, last_completed_step = excluded.last_completed_step,"
        " pending_messages = excluded.pending_messages, updated_at = excluded.updated_at, decision = NULL",
        target=saved.target,
        session=saved.session_id,
        task=saved.current_task,
        task_id=saved.current_task_id,
        step=saved.last_completed_step,
        pending=to_json(saved.pending_messages),
        now=tx.now(),
    )
    if same:
        return False
    step = f" (step {saved.last_completed_step})" if saved.last_completed_step else ""
    data = {"current_task": saved.current_task, "last_completed_step": saved.last_completed_step}
    add_update(tx, saved.target, UpdateKind.TASK, f"{saved.current_task}{step}", saved.current_task_id, data)
    return True


def _begin(tx: Tx, target: str) -> None:
    """The target's row is there, and this transaction alone changes what belongs to it."""
    tx.lock(f"bridge:{target}")
    tx.run("INSERT INTO bridge_targets (target) VALUES (:target) ON CONFLICT (target) DO NOTHING", target=target)


def _end(tx: Tx, message: Message, status: Status, outcome: str | None, reply: str | None) -> None:
    tx.run(
        "UPDATE bridge_messages SET status = :status, outcome = :outcome, reply = :reply, finished_at = :now,"
        " lease_until = NULL WHERE row_id = :row",
        status=status.value,
        outcome=outcome,
        reply=reply,
        now=tx.now(),
        row=message.row_id,
    )
