"""Incarnations: which session is at work for a target; each query a function of a transaction."""

from __future__ import annotations

from holdfast.bridge.model import Restart, UpdateKind, restart
from holdfast.bridge.queries import queue, tasks, updates
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx


def incarnation(tx: Tx, target: str) -> str | None:
    """The session last seen at work for a target."""
    row = tx.one(
        "SELECT i.session_id FROM bridge_targets t JOIN bridge_incarnations i ON i.row_id = t.incarnation"
        " WHERE t.target = :target",
        target=target,
    )
    return None if row is None else str(row["session_id"])


def last_seen(tx: Tx, target: str) -> int | None:
    row = tx.one("SELECT last_seen_at FROM bridge_targets WHERE target = :target", target=target)
    return None if row is None else row["last_seen_at"]


def seen(
    tx: Tx, target: str, session_id: str, source: str, *, known_is_alive: bool = False, transcript: str = ""
) -> Restart | None:
    """Record that an agent of the target is at work. On a restart the old one's messages are requeued."""
    _begin(tx, target)
    known = incarnation(tx, target)
    found = restart(target, known, session_id, known_is_alive=known_is_alive)
    if known is None or found is not None:
        sql = (
            "INSERT INTO bridge_incarnations (target, session_id, previous, source, started_at)"
            " VALUES (:target, :session, :previous, :source, :now) RETURNING row_id"
        )
        made = tx.one(sql, target=target, session=session_id, previous=known, source=source, now=tx.now())
        sql = "UPDATE bridge_targets SET incarnation = :row WHERE target = :target"
        tx.run(sql, row=made["row_id"] if made else None, target=target)
    tx.run("UPDATE bridge_targets SET last_seen_at = :now WHERE target = :target", now=tx.now(), target=target)
    if transcript:
        tx.run(
            "UPDATE bridge_incarnations SET transcript = :transcript WHERE session_id = :session"
            " AND row_id = (SELECT incarnation FROM bridge_targets WHERE target = :target)",
            transcript=transcript,
            session=session_id,
            target=target,
        )
    if found is not None:
        for message in queue.leased(tx, target, by=f"session:{found.old}"):
            queue.give_back(tx, message)
        tasks.ask_again(tx, target)
        updates.add(tx, target, UpdateKind.SESSION_RESTART, found.content, restart=found)
    return found


def _begin(tx: Tx, target: str) -> None:
    tx.lock(f"bridge:{target}")
    tx.run("INSERT INTO bridge_targets (target) VALUES (:target) ON CONFLICT (target) DO NOTHING", target=target)


@dataclass(frozen=True, slots=True)
class Incarnation:
    """A session that was at work for a target."""

    session_id: str
    previous: str | None
    source: str
    started_at: int


def latest(tx: Tx, target: str, limit: int) -> list[Incarnation]:
    """The sessions that were at work for a target, the latest first."""
    rows = tx.all(
        "SELECT session_id, previous, source, started_at FROM bridge_incarnations WHERE target = :target"
        " ORDER BY row_id DESC LIMIT :limit",
        target=target,
        limit=limit,
    )
    return [Incarnation(**row) for row in rows]


@dataclass(frozen=True, slots=True)
class Present:
    session_id: str
    source: str
    transcript: str | None


def present(tx: Tx, target: str) -> Present | None:
    row = tx.one(
        "SELECT i.session_id, i.source, i.transcript FROM bridge_targets t"
        " JOIN bridge_incarnations i ON i.row_id = t.incarnation WHERE t.target = :target",
        target=target,
    )
    return None if row is None else Present(**row)


@dataclass(frozen=True, slots=True)
class HookedSession:
    """The session at work for a target whose agent has hooks."""

    target: str
    session_id: str
    transcript: str


def at_work(tx: Tx) -> list[HookedSession]:
    """Targets whose agents have hooks, each with the session at work."""
    rows = tx.all(
        "SELECT t.target, i.session_id, coalesce(i.transcript, '') AS transcript FROM bridge_targets t"
        " JOIN bridge_incarnations i ON i.row_id = t.incarnation WHERE i.source LIKE 'hook%'"
    )
    return [HookedSession(**row) for row in rows]
