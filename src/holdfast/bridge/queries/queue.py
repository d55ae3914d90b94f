"""The queue's SQL: each query a function of a transaction."""
# ruff: noqa: S608 - the texts are put together from constants alone

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from holdfast.bridge.model import (
    ADOPTED,
    FROM_CHAT,
    KEPT_FOR_STOP,
    MAX_ATTEMPTS,
    MAX_PENDING,
    SAME_TEXT_MS,
    TTL_MS,
    Message,
    Outcome,
    Priority,
    Refusal,
    Status,
    UpdateKind,
    fingerprint,
)
from holdfast.bridge.queries import updates
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Row, Tx, leases

MESSAGE = ", ".join(field.name for field in fields(Message))
MESSAGES = leases.Lease(
    "bridge_messages",
    "row_id",
    free="status = 'pending'",
    held="status = 'leased'",
    taken="status = 'leased', attempts = attempts + 1, way = :way",
    released="status = 'pending', way = NULL",
)
OF_SESSION = "session:"
"""Prefix of a lease holder that is an agent session."""
EDITED = ".edit"
"""Suffix of the id of an edit that became a separate message; a chat message's id precedes it."""
NEXT_SEQ = "(SELECT coalesce(max(seq), 0) + 1 FROM bridge_messages WHERE target = :target)"
"""A queue position after everything that was ever sent to a target."""
WAITING = "(SELECT count(*) FROM bridge_messages WHERE target = :target AND status = 'pending')"
FRONT = (
    f"SELECT {MESSAGE}, 0 AS waiting FROM bridge_messages WHERE target = :target AND status = 'leased'"
    f" UNION ALL SELECT {MESSAGE}, {WAITING} FROM bridge_messages WHERE row_id = (SELECT row_id FROM bridge_messages"
    " WHERE target = :target AND status = 'pending' ORDER BY priority DESC, seq LIMIT 1)"
)
"""The leased messages, and the next one."""
FOUND = (
    f"SELECT {MESSAGE}, {WAITING.replace(':target', 'm.target')} AS waiting FROM bridge_messages AS m WHERE id = :id"
)


def enqueue(
    tx: Tx,
    target: str,
    text: str,
    *,
    sender: str,
    source: str,
    message_id: str | None = None,
    priority: Priority = Priority.NORMAL,
    ttl_ms: int = TTL_MS,
    reply_to: str | None = None,
) -> str | Refusal:
    """Queue a message for a target; returns its id, or why it was refused."""
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
    report(tx, queued, target, source, Status.PENDING)
    return queued


def report(tx: Tx, message_id: str, target: str, source: str, status: Status) -> None:
    """Report a message's status to the chat that it came from."""
    if source == FROM_CHAT:
        updates.add(tx, target, UpdateKind.PROGRESS, status.value, message_id, chat_only=True)


def is_full(tx: Tx, target: str, priority: Priority) -> bool:
    return waiting(tx, target) >= _places(priority)


def _places(priority: Priority) -> int:
    """Return how many messages may wait; some places are reserved for STOP."""
    return MAX_PENDING + (KEPT_FOR_STOP if priority is Priority.STOP else 0)


def _just_sent(tx: Tx, target: str, print_: str, now: int) -> bool:
    """Whether the same text was sent a moment ago and still waits."""
    sql = (
        "SELECT 1 AS known FROM bridge_messages WHERE target = :target AND fingerprint = :print"
        " AND status = 'pending' AND created_at > :since LIMIT 1"
    )
    known = tx.one(sql, target=target, print=print_, since=now - SAME_TEXT_MS)
    return known is not None


def is_open(tx: Tx, target: str, text: str) -> bool:
    """Whether a message of this text waits or is in progress."""
    sql = (
        "SELECT 1 AS known FROM bridge_messages WHERE target = :target AND fingerprint = :print"
        " AND (status = 'pending' OR status = 'leased') LIMIT 1"
    )
    return tx.one(sql, target=target, print=fingerprint(text)) is not None


def take(tx: Tx, target: str, by: str, way: str, lease_ms: int, *, least: Priority = Priority.NORMAL) -> Message | None:
    """Lease the next message: most urgent, then oldest. One at a time; a STOP does not wait for its turn."""
    return hand_out(tx, front(tx, target), by, way, lease_ms, least=least)


def hand_out(
    tx: Tx, queue: Front, by: str, way: str, lease_ms: int, *, least: Priority = Priority.NORMAL
) -> Message | None:
    """Lease the message at the front if its turn has come."""
    message = queue.following
    if message is None or message.priority < (Priority.STOP if queue.out else least):
        return None
    leases.take(tx, MESSAGES, message.row_id, by, lease_ms, way=way)
    tx.emit("bridge.taken", message.id, {"target": message.target})
    report(tx, message.id, message.target, message.source, Status.LEASED)
    message.status, message.attempts = Status.LEASED.value, message.attempts + 1
    message.lease_by, message.lease_until, message.way = by, tx.now() + lease_ms, way
    return message


def most_urgent(messages: Iterable[Message]) -> Message | None:
    """Return the oldest message of the highest priority."""
    return max(messages, key=lambda message: (message.priority, -message.seq), default=None)


@dataclass(frozen=True, slots=True)
class Front:
    out: list[Message]
    """The leased messages, oldest first."""
    following: Message | None
    """The next message."""
    waiting: int
    """How many are waiting, the next one included."""


def front(tx: Tx, target: str) -> Front:
    """Return the leased messages and the next one, after requeuing expired leases and ending expired messages."""
    tx.lock(f"bridge:{target}")
    now = tx.now()
    while True:
        rows = tx.all(FRONT, target=target)
        waiting = max((row.pop("waiting") for row in rows), default=0)
        messages = _by_age(rows)
        following = next((message for message in messages if message.status == Status.PENDING), None)
        out = [message for message in messages if message is not following]
        late = [message for message in out if leases.expired(message.lease_until, now)]
        for message in late:
            give_back(tx, message)
        if following is not None and following.expires_at < now:
            expire(tx, following)
        elif not late:
            return Front(out, following, waiting)


def finish(tx: Tx, message: Message, outcome: Outcome, reply: str | None) -> Status:
    """End a message or requeue it in its place; returns its new status."""
    if outcome is Outcome.LATER:
        return give_back(tx, message)
    status = Status.DONE if outcome is Outcome.DONE else Status.FAILED
    content = reply or ("Done." if outcome is Outcome.DONE else "It could not be done.")
    _end(tx, message, status, UpdateKind.REPLY, content, outcome, reply)
    return status


def give_back(tx: Tx, message: Message) -> Status:
    """Requeue an unfinished message in its old place; after too many attempts it is a dead letter."""
    if message.attempts >= MAX_ATTEMPTS:
        content = f"Handed out {message.attempts} times without an end: {message.text[:200]}"
        _end(tx, message, Status.DEAD, UpdateKind.DEAD_LETTER, content)
        return Status.DEAD
    leases.release(tx, MESSAGES, message.row_id)
    tx.emit("bridge.returned", message.id, {"target": message.target})
    report(tx, message.id, message.target, message.source, Status.PENDING)
    return Status.PENDING


def expire_old(tx: Tx, limit: int = 500) -> int:
    """End messages that nobody took in time, even if nobody asks for them."""
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
    _end(tx, message, Status.EXPIRED, UpdateKind.EXPIRED, f"Nobody took it in time: {message.text[:200]}")


def cancel(tx: Tx, message: Message, by: str) -> None:
    """Cancel a waiting message."""
    _end(tx, message, Status.CANCELLED, UpdateKind.CANCELLED, f"Cancelled by {by}: {message.text[:200]}")


def rewrite(tx: Tx, message: Message, text: str, priority: Priority) -> None:
    """Replace the text of a waiting message; it keeps its id and its place."""
    sql = (
        "UPDATE bridge_messages SET text = :text, fingerprint = :fingerprint, priority = :priority WHERE row_id = :row"
    )
    tx.run(sql, text=text, fingerprint=fingerprint(text), priority=int(priority), row=message.row_id)
    tx.emit("bridge.edited", message.id, {"target": message.target, "priority": priority.word})


def leased(tx: Tx, target: str, by: str | None = None) -> list[Message]:
    """Leased messages, oldest first; with `by` those of one taker."""
    rows = tx.all(
        f"SELECT {MESSAGE} FROM bridge_messages WHERE target = :target AND status = 'leased'"
        + (" AND lease_by = :by" if by is not None else "")
        + " ORDER BY priority DESC, seq",  # in the order of the index; there is one, rarely a STOP as well
        target=target,
        **({} if by is None else {"by": by}),
    )
    return _by_age(rows)


def _by_age(rows: Iterable[Row]) -> list[Message]:
    return sorted((Message(**row) for row in rows), key=lambda message: message.seq)


def is_known(tx: Tx, message_id: str, target: str) -> bool:
    sql = "SELECT 1 AS known FROM bridge_messages WHERE id = :id AND target = :target"
    return tx.one(sql, id=message_id, target=target) is not None


def find(tx: Tx, message_id: str, by: str) -> tuple[Message, int] | None:
    """A message by its id, and how many wait for its target.

    If several targets have one with that id, the one that `by` took, or else the newest."""
    rows = tx.all(FOUND, id=message_id)
    if not rows:
        return None
    row = max(rows, key=lambda row: (row["lease_by"] == by, row["row_id"]))
    waiting = row.pop("waiting")
    return Message(**row), waiting


def pending(tx: Tx, target: str, limit: int) -> list[Message]:
    """Waiting messages in the order of delivery."""
    rows = tx.all(
        f"SELECT {MESSAGE} FROM bridge_messages WHERE target = :target AND status = 'pending'"
        " ORDER BY priority DESC, seq LIMIT :limit",
        target=target,
        limit=limit,
    )
    return [Message(**row) for row in rows]


def waiting_from_chat(tx: Tx, target: str, chat_message: str) -> Message | None:
    """Return the waiting message for one chat message: as written, or its newest edit."""
    rows = tx.all(
        f"SELECT {MESSAGE} FROM bridge_messages WHERE target = :target AND status = 'pending' AND source = :source"
        " AND (id = :id OR substr(id, 1, :length) = :edited) ORDER BY seq DESC LIMIT 1",
        target=target,
        source=FROM_CHAT,
        id=chat_message,
        edited=f"{chat_message}{EDITED}",
        length=len(chat_message) + len(EDITED),
    )
    return Message(**rows[0]) if rows else None


def waiting(tx: Tx, target: str) -> int:
    return count(tx, target, Status.PENDING)


def waiting_by_sender(tx: Tx, target: str) -> list[tuple[str, int]]:
    """Senders of waiting messages and how many of each, most first."""
    rows = tx.all(
        "SELECT sender, count(*) AS n FROM bridge_messages WHERE target = :target AND status = 'pending'"
        " GROUP BY sender ORDER BY n DESC, sender",
        target=target,
    )
    return [(row["sender"], int(row["n"])) for row in rows]


def count(tx: Tx, target: str, status: Status) -> int:
    row = tx.one(
        f"SELECT count(*) AS n FROM bridge_messages WHERE target = :target AND status = '{status.value}'", target=target
    )
    return int(row["n"]) if row else 0


def _end(
    tx: Tx,
    message: Message,
    status: Status,
    kind: UpdateKind,
    content: str,
    outcome: Outcome | None = None,
    reply: str | None = None,
) -> None:
    """End a message and tell its target's followers."""
    sql = (
        "UPDATE bridge_messages SET status = :status, outcome = :outcome, reply = :reply, finished_at = :now,"
        " lease_until = NULL WHERE row_id = :row"
    )
    ended = None if outcome is None else outcome.value
    tx.run(sql, status=status.value, outcome=ended, reply=reply, now=tx.now(), row=message.row_id)
    updates.add(tx, message.target, kind, content, message.id, outcome=outcome)
    report(tx, message.id, message.target, message.source, status)


def hook_leases(tx: Tx) -> list[tuple[str, int]]:
    """Sessions that hold messages by a hook, each with its earliest lease end."""
    rows = tx.all(
        "SELECT lease_by, min(lease_until) AS until FROM bridge_messages"
        " WHERE status = 'leased' AND way = 'hook' GROUP BY lease_by"
    )
    return [(str(row["lease_by"]).removeprefix(OF_SESSION), int(row["until"])) for row in rows]


@dataclass(frozen=True, slots=True)
class Due:
    """Targets that need attention from one taker."""

    mine: set[str]
    """Targets where the taker has a message."""
    waiting: set[str]
    """Targets where a message waits, or a lease expired."""


def due(tx: Tx, by: str) -> Due:
    """Find the targets with waiting messages, messages of this taker, or expired leases."""
    now = tx.now()
    pending = tx.all("SELECT DISTINCT target FROM bridge_messages WHERE status = 'pending'")
    leased = tx.all("SELECT target, lease_by, lease_until FROM bridge_messages WHERE status = 'leased'")
    return Due(
        mine={row["target"] for row in leased if row["lease_by"] == by},
        waiting={row["target"] for row in pending}
        | {row["target"] for row in leased if leases.expired(row["lease_until"], now)},
    )


def stopped(tx: Tx) -> list[str]:
    """Targets for which a STOP waits."""
    sql = "SELECT DISTINCT target FROM bridge_messages WHERE status = 'pending' AND priority = :stop ORDER BY target"
    return [row["target"] for row in tx.all(sql, stop=int(Priority.STOP))]


def last_seq(tx: Tx, target: str) -> int:
    row = tx.one("SELECT max(seq) AS seq FROM bridge_messages WHERE target = :target", target=target)
    return int((row and row["seq"]) or 0)


def is_stopped(tx: Tx, target: str, since: int) -> bool:
    """Return whether a STOP came after a queue position, waiting or already taken by another agent."""
    first = pending(tx, target, 1)
    if first and first[0].priority == Priority.STOP:
        return True
    sql = (
        "SELECT 1 AS found FROM bridge_messages WHERE target = :target AND seq > :since AND priority = :stop"
        " AND source <> :adopted AND status <> 'cancelled' LIMIT 1"
    )
    stop = tx.one(sql, target=target, since=since, stop=int(Priority.STOP), adopted=ADOPTED)
    return stop is not None
