"""The ledgers' SQL, each query a function of a transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from holdfast.agents.transcript_position import Position
from holdfast.briefing.ledger.model import Ledger
from holdfast.identity.project import Root
from holdfast.reasoning.queries import projects as project_queries
from holdfast.store import Row, Tx


@dataclass(frozen=True, slots=True)
class Kept:
    """A stored ledger, and how far its transcript was read for it."""

    ledger: Ledger
    position: Position


@dataclass(frozen=True, slots=True)
class Place:
    """Where a session's transcript lies, and which project it belongs to."""

    root: Root
    machine: str
    transcript: str


def find(tx: Tx, session_id: str) -> Kept | None:
    """The ledger of a session."""
    row = tx.one("SELECT content, read_to, file_mark FROM ledgers WHERE session_id = :id", id=session_id)
    return None if row is None else _kept(row)


def keep(tx: Tx, ledger: Ledger, position: Position, based_on: Position, place: Place) -> bool:
    """Store a ledger; False where another reading saw as much or more of the file, or where recording is paused."""
    if project_queries.is_paused(tx, place.root, None):
        return False
    tx.lock(f"ledger:{ledger.session_id}")
    stored = find(tx, ledger.session_id)
    if stored is not None:
        before = stored.position
        if before != based_on and before.offset >= position.offset and before.begins_like(position):
            return False
        # What git saw is stored beside the reading of the transcript, perhaps since this one began.
        ledger.git_start, ledger.git_view = stored.ledger.git_start, stored.ledger.git_view
    _put(tx, ledger, position, place)
    return True


def keep_git(tx: Tx, session_id: str, root: Root, change: Callable[[Ledger], None], place: Place | None = None) -> bool:
    """Store what git saw in a session's ledger, unless recording is paused; one that was not begun yet is begun where
    its place is given."""
    if project_queries.is_paused(tx, root, None):
        return False
    tx.lock(f"ledger:{session_id}")
    stored = find(tx, session_id)
    if stored is None:
        if place is None:
            return False
        stored = Kept(Ledger(session_id), Position())
    change(stored.ledger)
    if place is not None:
        _put(tx, stored.ledger, stored.position, place)
    else:
        sql = "UPDATE ledgers SET content = :content WHERE session_id = :id"
        tx.run(sql, content=stored.ledger.to_json(), id=session_id)
    return True


def roots_at_work(tx: Tx, machine: str, besides: str, since: int, until: int) -> list[str]:
    """The roots of the other sessions of a machine that were seen, or wrote something, between two times."""
    rows = tx.all(
        "SELECT DISTINCT a.root FROM agent_sessions a LEFT JOIN ledgers l ON l.session_id = a.session_id"
        " WHERE a.machine = :machine AND a.session_id <> :besides AND a.started_at <= :until"
        " AND (a.seen_at >= :since OR l.last_at >= :since)",
        machine=machine,
        besides=besides,
        since=since,
        until=until,
    )
    return [str(row["root"]) for row in rows]


def _put(tx: Tx, ledger: Ledger, position: Position, place: Place) -> None:
    tx.run(
        "INSERT INTO ledgers (session_id, root, project_key, machine, transcript, file_mark, read_to, content, last_at,"
        " updated_at) VALUES (:id, :root, :key, :machine, :transcript, :mark, :read_to, :content, :last_at, :now)"
        " ON CONFLICT (session_id) DO UPDATE SET root = excluded.root, project_key = excluded.project_key,"
        " machine = excluded.machine, transcript = excluded.transcript, file_mark = excluded.file_mark,"
        " read_to = excluded.read_to, content = excluded.content, last_at = excluded.last_at,"
        " updated_at = excluded.updated_at,"
        # What goes on is no longer settled; what was dismissed stays so until it is worked on again.
        " settled_at = CASE WHEN ledgers.settled = 'dismissed' AND excluded.last_at <= ledgers.settled_at"
        " THEN ledgers.settled_at END",
        id=ledger.session_id,
        root=place.root.uri,
        key=place.root.key,
        machine=place.machine,
        transcript=place.transcript,
        mark=position.mark,
        read_to=position.offset,
        content=ledger.to_json(),
        last_at=ledger.last_at,
        now=tx.now(),
    )


def recent(tx: Tx, root: Root, limit: int) -> Iterator[Ledger]:
    """The latest ledgers of a project: of this root, and of the same project elsewhere. Each is read when it is due."""
    # Two look-ups that each end at their limit: an OR over both would sort all there are.
    found = tx.all(
        "SELECT session_id, last_at FROM ledgers WHERE root = :root ORDER BY last_at DESC LIMIT :limit",
        root=root.uri,
        limit=limit,
    )
    if root.key is not None:
        found += tx.all(
            "SELECT session_id, last_at FROM ledgers WHERE project_key = :key ORDER BY last_at DESC LIMIT :limit",
            key=root.key,
            limit=limit,
        )
    latest = {row["session_id"]: row["last_at"] for row in found}
    for one in sorted(latest, key=lambda one: (-latest[one], one))[:limit]:
        kept = find(tx, one)
        if kept is not None:
            yield kept.ledger


def told_of(tx: Tx, session_ids: Sequence[str]) -> set[str]:
    """Those of these sessions that a hook has told of."""
    sql = "SELECT session_id FROM agent_sessions WHERE session_id = :id"
    return {one for one in session_ids if tx.one(sql, id=one) is not None}


def _kept(row: Row) -> Kept:
    return Kept(Ledger.from_json(row["content"]), Position(row["read_to"], row["file_mark"]))
