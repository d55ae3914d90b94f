"""SQL of the ledgers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.agents.transcript_position import Position
from holdfast.briefing.ledger.model import Ledger
from holdfast.identity.project import Root
from holdfast.lazy_dataclass import dataclass
from holdfast.reasoning.queries import projects as project_queries
from holdfast.store import Tx


@dataclass(frozen=True, slots=True)
class Kept:
    """A stored ledger, and how far its transcript was read for it."""

    ledger: Ledger
    position: Position


@dataclass(frozen=True, slots=True)
class TranscriptLocation:
    """Where a session's transcript is, and which project it belongs to."""

    root: Root
    machine: str
    transcript: str


def find(tx: Tx, session_id: str) -> Kept | None:
    """Return the ledger of a session."""
    row = tx.one("SELECT content, read_to, file_mark FROM ledgers WHERE session_id = :id", id=session_id)
    if row is None:
        return None
    return Kept(Ledger.from_json(row["content"]), Position(row["read_to"], row["file_mark"]))


def keep(tx: Tx, ledger: Ledger, position: Position, based_on: Position, location: TranscriptLocation) -> bool:
    """Store a ledger; False if another reader saw as much or more of the file, or while recording is paused."""
    if project_queries.is_paused(tx, location.root, None):
        return False
    tx.lock(f"ledger:{ledger.session_id}")
    stored = find(tx, ledger.session_id)
    if stored is not None:
        before = stored.position
        if before != based_on and before.offset >= position.offset and before.begins_like(position):
            return False
        # What git saw is stored beside the reading of the transcript, perhaps since this one began.
        ledger.git_start, ledger.git_view = stored.ledger.git_start, stored.ledger.git_view
    _put(tx, ledger, position, location)
    return True


def keep_git(
    tx: Tx, session_id: str, root: Root, change: Callable[[Ledger], None], location: TranscriptLocation | None = None
) -> bool:
    """Store what git saw in a session's ledger, unless recording is paused; with a location, begin one if needed."""
    if project_queries.is_paused(tx, root, None):
        return False
    tx.lock(f"ledger:{session_id}")
    stored = find(tx, session_id)
    if stored is None:
        if location is None:
            return False
        stored = Kept(Ledger(session_id), Position())
    change(stored.ledger)
    if location is not None:
        _put(tx, stored.ledger, stored.position, location)
    else:
        sql = "UPDATE ledgers SET content = :content WHERE session_id = :id"
        tx.run(sql, content=stored.ledger.to_json(), id=session_id)
    return True


def roots_at_work(tx: Tx, machine: str, besides: str, since: int, until: int) -> list[str]:
    """Return the roots of a machine's other sessions that were seen, or wrote something, between two times."""
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


def _put(tx: Tx, ledger: Ledger, position: Position, location: TranscriptLocation) -> None:
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
        root=location.root.uri,
        key=location.root.key,
        machine=location.machine,
        transcript=location.transcript,
        mark=position.mark,
        read_to=position.offset,
        content=ledger.to_json(),
        last_at=ledger.last_at,
        now=tx.now(),
    )


def seen_by_hooks(tx: Tx, session_ids: Sequence[str]) -> set[str]:
    """Return those of these sessions that a hook reported."""
    sql = "SELECT session_id FROM agent_sessions WHERE session_id = :id"
    return {one for one in session_ids if tx.one(sql, id=one) is not None}
