"""SQL of the ledgers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.agents.transcript_position import Position
from holdfast.briefing.ledger.model import Ledger
from holdfast.identity.project import Root, RootSource
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


@dataclass(frozen=True, slots=True)
class KnownTranscript:
    """What is known about a session whose transcript is on disk."""

    session_id: str
    read_to: int | None
    """How far it was read; None if it never was."""
    ledger_root: str | None
    """The project that its ledger belongs to."""
    seen_in: Root | None
    """The project that a hook saw it in; None if none did."""
    machine: str | None
    """Where a hook saw it."""
    ended_at: int | None
    """When it was last seen, if it ended then."""
    is_managed: bool
    """Whether it is the conversation of a team, which Holdfast runs."""


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
        # A session that continues is no longer settled; a dismissed one stays so until it is worked on again.
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


def known_transcripts(tx: Tx, session_ids: Sequence[str]) -> list[KnownTranscript]:
    """Return what is known about these sessions."""
    if not session_ids:
        return []
    names = {f"id{number}": one for number, one in enumerate(session_ids)}
    wanted = ", ".join(f"(:{name})" for name in names)
    rows = tx.all(
        f"WITH wanted (id) AS (VALUES {wanted})"  # noqa: S608 - numbered names
        " SELECT w.id, l.read_to, l.root AS ledger_root, a.machine, a.root, a.project_key, a.seen_at, a.ended_at,"
        " c.session_id AS managed FROM wanted w LEFT JOIN ledgers l ON l.session_id = w.id"
        " LEFT JOIN agent_sessions a ON a.session_id = w.id LEFT JOIN conversations c ON c.session_id = w.id",
        **names,
    )
    return [
        KnownTranscript(
            str(row["id"]),
            row["read_to"],
            row["ledger_root"],
            None if row["root"] is None else Root(row["root"], row["project_key"], RootSource.DIRECTORY),
            row["machine"],
            row["seen_at"] if row["ended_at"] is not None else None,
            is_managed=row["managed"] is not None,
        )
        for row in rows
    ]


def transcripts_seen(tx: Tx, machine: str, limit: int) -> list[str]:
    """Return the transcripts of a machine's sessions, of those seen last."""
    rows = tx.all(
        "SELECT transcript FROM agent_sessions WHERE machine = :machine AND transcript IS NOT NULL"
        " ORDER BY seen_at DESC LIMIT :limit",
        machine=machine,
        limit=limit,
    )
    return [str(row["transcript"]) for row in rows]
