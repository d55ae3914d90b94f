"""Makes the rows that survived a damaged database consistent with each other again."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from holdfast.lazy_dataclass import dataclass
from holdfast.store.copying import quote, sqlite_tables
from holdfast.store.register import LOST, total
from holdfast.store.salvage.session_clues import SessionClues
from holdfast.store.salvage.stand_ins import stand_in_for_conversations, stand_in_for_runs
from holdfast.store.verify import LOST_EVENT, numbers_text

RECORD_LOST = "the session's record was lost"
THOUGHTS_LOST = "lost thoughts "
ALL_LOST = "lost as a whole"
RECOVERED = "Recovered"
TITLE_LENGTH = 80
MAX_EVENT_GAP = 1_000_000
"""No damage removes so many events from the middle of the log; a number further away is itself damaged."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Rows of a table that are gone."""

    table: str
    text: str

    def __str__(self) -> str:
        return f"{self.table}: {self.text}"


@dataclass(frozen=True, slots=True)
class SessionLoss:
    """What a reasoning session has lost."""

    session_id: str
    title: str
    text: str

    def __str__(self) -> str:
        return f"session {self.session_id} ({self.title}): {self.text}"


MAX_ROWS_NAMED = 50


def rows_text(numbers: Iterable[int]) -> str:
    """Name rows by their rowids, up to a readable number."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if ranges and number <= ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    named = ", ".join(numbers_text(low, high) for low, high in ranges[:MAX_ROWS_NAMED])
    more = sum(high - low + 1 for low, high in ranges[MAX_ROWS_NAMED:])
    one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    return f"{'row' if one else 'rows'} {named}" + (f" and {more} more" if more else "")


def make_consistent(connection: apsw.Connection, clues: SessionClues) -> tuple[list[Loss], list[SessionLoss]]:
    """Repair counters and references inside the caller's transaction; returns what could not be repaired."""
    present = {table.name for table in sqlite_tables(connection)}
    gaps: list[Loss] = []
    mended: list[Loss] = []
    if {"event_head", "events"} <= present:
        gaps = _drop_stray_events(connection)
        _repair_event_counter(connection)
        gaps += [*_empty_unreadable_events(connection), *_fill_event_gaps(connection)]
    if {"sessions", "thoughts"} <= present:
        mended = _repair_thought_keys(connection, clues)
        _repair_sessions(connection, clues)
        mended += _repair_session_fields(connection)
    if {"sessions", "thoughts", "branches"} <= present:
        _repair_branches(connection)
    if {"asks", "conversations"} <= present:
        stand_in_for_conversations(connection, clues.source)
    if {"protocol_runs", "protocol_gates", "protocol_evidence", "protocol_violations"} <= present:
        stand_in_for_runs(connection, clues.source)
    orphans = _drop_orphans(connection)
    sessions = _name_lost_thoughts(connection) if {"sessions", "thoughts"} <= present else []
    if "session_register" in present:
        connection.execute("UPDATE event_head SET epoch = lower(hex(randomblob(16))) WHERE epoch = ''")
        sessions += _repair_register(connection)
    return [*gaps, *mended, *orphans], sessions


def _repair_event_counter(connection: apsw.Connection) -> None:
    connection.execute(
        "INSERT INTO event_head (id, seq) SELECT 1, coalesce(max(seq), 0) FROM events WHERE true"
        " ON CONFLICT (id) DO UPDATE SET seq = max(event_head.seq, excluded.seq)"
    )


def _drop_stray_events(connection: apsw.Connection) -> list[Loss]:
    """Drop events whose number is far from all others, and such a counter: the damage is in the number."""
    series = connection.execute(
        "SELECT min(seq), max(seq) FROM (SELECT seq, sum(leap) OVER (ORDER BY seq) AS run FROM (SELECT seq,"
        " seq - lag(seq, 1, seq) OVER (ORDER BY seq) > :far AS leap FROM events)) GROUP BY run ORDER BY count(*) DESC",
        {"far": MAX_EVENT_GAP},
    ).fetchall()
    losses = []
    for first, last in series[1:]:
        connection.execute("DELETE FROM events WHERE seq BETWEEN ? AND ?", (first, last))
        losses.append(Loss("events", f"numbers {numbers_text(int(str(first)), int(str(last)))}, far from all others"))
    newest = int(str(series[0][1])) if series else 0
    connection.execute(
        "UPDATE event_head SET seq = :newest WHERE :newest > 0 AND seq - :newest > :far",
        {"newest": newest, "far": MAX_EVENT_GAP},
    )
    if connection.changes():
        losses.append(Loss("event_head", "the number of the newest event, which was recounted"))
    return losses


def _empty_unreadable_events(connection: apsw.Connection) -> list[Loss]:
    """Turn events whose data cannot be read into lost ones: readers of the log must get past them."""
    rows = connection.execute(
        "UPDATE events SET kind = ?, subject = 'events', data = '{}'"
        " WHERE iif(json_valid(data), json_type(data), '') <> 'object' RETURNING seq",
        (LOST_EVENT,),
    ).fetchall()
    return [Loss("events", f"{rows_text(int(str(seq)) for (seq,) in rows)}, whose data was damaged")] if rows else []


def _fill_event_gaps(connection: apsw.Connection) -> list[Loss]:
    """Write a marker for each lost event: readers and `verify` rely on a log without gaps."""
    gaps = connection.execute(
        "SELECT seq + 1, following - 1, at FROM (SELECT seq, at, lead(seq, 1, (SELECT seq + 1 FROM event_head))"
        " OVER (ORDER BY seq) AS following FROM events) WHERE following > seq + 1 ORDER BY seq"
    ).fetchall()
    losses = []
    for first, last, at in gaps:
        connection.execute(
            "WITH RECURSIVE lost (seq) AS (SELECT :first UNION ALL SELECT seq + 1 FROM lost WHERE seq < :last)"
            " INSERT INTO events (seq, at, kind, subject, data) SELECT seq, :at, :kind, 'events', '{}' FROM lost",
            {"first": first, "last": last, "at": at, "kind": LOST_EVENT},
        )
        losses.append(Loss("events", f"numbers {numbers_text(int(str(first)), int(str(last)))}"))
    return losses


def _repair_thought_keys(connection: apsw.Connection, clues: SessionClues) -> list[Loss]:
    """Move thoughts that fit no session to the one that the index names: the damage is in their key."""
    strangers = connection.execute(
        "SELECT session_id, min(row_id) FROM thoughts WHERE session_id NOT IN (SELECT id FROM sessions)"
        " GROUP BY session_id HAVING count(*) = 1"
    ).fetchall()
    known = clues.known_ids() if strangers else set()
    doubtful = {int(str(rowid)) for session_id, rowid in strangers if session_id not in known}
    misnumbered = connection.execute(
        "SELECT t.row_id FROM thoughts t JOIN sessions s ON s.id = t.session_id"
        " WHERE t.number < 1 OR t.number > s.thought_count"
    ).fetchall()
    doubtful |= {int(str(rowid)) for (rowid,) in misnumbered}
    keys = clues.thought_keys(doubtful) if doubtful else {}
    mended = []
    for rowid, (session_id, number) in keys.items():
        connection.execute(
            "UPDATE OR IGNORE thoughts SET session_id = :session, number = :number"
            " WHERE row_id = :row AND (session_id, number) <> (:session, :number)",
            {"session": session_id, "number": number, "row": rowid},
        )
        mended += [rowid] * connection.changes()
    text = f"{rows_text(mended)}: the session or the number was damaged, and was read from the index"
    return [Loss("thoughts", text)] if mended else []


def _repair_sessions(connection: apsw.Connection, clues: SessionClues) -> None:
    """Create placeholders for lost sessions whose thoughts survived: the thoughts are worth more than the title."""
    missing = connection.execute(
        "SELECT session_id, min(number), max(number), count(DISTINCT branch_id), min(created_at), max(created_at)"
        " FROM thoughts WHERE session_id NOT IN (SELECT id FROM sessions) GROUP BY session_id"
    ).fetchall()
    clues_of = clues.of({str(row[0]) for row in missing}) if missing else {}
    for session_id, first, last, branches, created, updated in missing:
        clue = clues_of[str(session_id)]
        status = clue.status if clue.status in ("archived", "deleted") else "active"
        connection.execute(
            "INSERT INTO sessions (id, title, tags, status, pinned, root_uri, project_key, thought_count, branch_count,"
            " head_hash, damage, created_at, updated_at, archived_at, deleted_at)"
            " SELECT :id, :title, '[]', :status, 0, :root, coalesce(:key, (SELECT project_key FROM projects"
            " WHERE root_uri = :root)), max(:last, :newest), :branches, hash, :damage, :created, :updated,"
            " iif(:status = 'archived', :updated, NULL), iif(:status = 'deleted', :updated, NULL)"
            " FROM thoughts WHERE session_id = :id AND number = :last",
            {
                "id": session_id,
                "title": _recovered_title(connection, str(session_id), first),
                "status": status,
                "root": clue.root_uri or _root_of_writers(connection, str(session_id)),
                "key": clue.project_key,
                "last": last,
                "newest": clue.newest_thought,
                "branches": branches,
                "damage": RECORD_LOST,
                "created": created,
                "updated": updated,
            },
        )
    # An older copy of the record may have survived; the next thought must not reuse an existing number.
    connection.execute(
        "UPDATE sessions SET thought_count = newest.number, head_hash = newest.hash"
        " FROM (SELECT session_id, max(number) AS number, hash FROM thoughts GROUP BY session_id) AS newest"
        " WHERE newest.session_id = sessions.id AND newest.number > sessions.thought_count"
    )


def _repair_session_fields(connection: apsw.Connection) -> list[Loss]:
    """Replace damaged values that would make the whole session unreadable with defaults."""
    losses = []
    for column, usual, damaged in (
        ("status", "active", "status NOT IN ('active', 'archived', 'deleted')"),
        ("tags", "[]", "iif(json_valid(tags), json_type(tags), '') <> 'array'"),
    ):
        sql = f"UPDATE sessions SET {column} = ? WHERE {damaged} RETURNING rowid"  # noqa: S608 - our own
        values = connection.execute(sql, (usual,)).fetchall()
        if values:
            rows = rows_text(int(str(rowid)) for (rowid,) in values)
            losses.append(Loss("sessions", f"{rows}: the {column} could not be read and is {usual} now"))
    return losses


def _recovered_title(connection: apsw.Connection, session_id: str, number: object) -> str:
    """Return a title that says what happened, and how the session begins."""
    rows = connection.execute(
        "SELECT CAST(substr(content, 1, 1000) AS BLOB) FROM thoughts WHERE session_id = ? AND number = ?",
        (session_id, number),
    ).fetchall()
    text = _decoded(rows[0][0]) if rows else ""
    line = next((line for line in text.splitlines() if line.strip()), "")
    words = " ".join("".join(char if char.isprintable() else " " for char in line).split())
    return f"{RECOVERED}: {words}"[:TITLE_LENGTH] if words else RECOVERED


def _root_of_writers(connection: apsw.Connection, session_id: str) -> str | None:
    """Return the root of the connection that wrote the newest thoughts of a session."""
    columns = next((table.columns for table in sqlite_tables(connection) if table.name == "connections"), ())
    for column in ("bound_root", "root_uri"):
        if column in columns:
            rows = connection.execute(
                f"SELECT CAST(c.{column} AS BLOB) FROM thoughts t JOIN connections c ON c.id = t.connection_id"  # noqa: S608
                f" WHERE t.session_id = ? AND c.{column} IS NOT NULL ORDER BY t.number DESC LIMIT 1",
                (session_id,),
            ).fetchall()
            if rows:
                return _decoded(rows[0][0])
    return None


def _decoded(stored: object) -> str:
    return stored.decode("utf-8", "replace") if isinstance(stored, bytes) else str(stored)


def _repair_branches(connection: apsw.Connection) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO branches (session_id, branch_id, from_number, thought_count, created_at)"
        " SELECT session_id, branch_id, coalesce(min(branch_from), min(number)), count(*), min(created_at)"
        " FROM thoughts WHERE branch_id IS NOT NULL GROUP BY session_id, branch_id"
    )


def _drop_orphans(connection: apsw.Connection) -> list[Loss]:
    """Delete rows that refer to a lost row, and then the rows that referred to them."""
    dropped: dict[tuple[str, str], list[int]] = {}
    while orphans := connection.execute("PRAGMA foreign_key_check").fetchall():
        for table, rowid, parent, _ in orphans:
            delete = f"DELETE FROM {quote(str(table))} WHERE rowid = ?"  # noqa: S608 - a name from the catalog
            connection.execute(delete, (rowid,))
            if connection.changes():
                dropped.setdefault((str(table), str(parent)), []).append(int(str(rowid)))
    return [
        Loss(table, f"{rows_text(rows)}, which belonged to lost {parent}") for (table, parent), rows in dropped.items()
    ]


def _name_lost_thoughts(connection: apsw.Connection) -> list[SessionLoss]:
    incomplete = connection.execute(
        "SELECT s.id, CAST(s.title AS BLOB), s.thought_count, CAST(s.damage AS BLOB)"
        " FROM sessions s LEFT JOIN thoughts t ON t.session_id = s.id"
        " GROUP BY s.id HAVING count(t.number) < s.thought_count OR s.damage IS NOT NULL ORDER BY s.id"
    ).fetchall()
    losses = []
    for session_id, title, expected, stored in incomplete:
        damage = None if stored is None else _decoded(stored)
        if damage is not None and not damage.startswith((RECORD_LOST, THOUGHTS_LOST)):
            continue  # set by something else, such as a removal in progress: thoughts are missing on purpose
        missing = _missing_numbers(connection, str(session_id), int(str(expected)))
        record_lost = [RECORD_LOST] if damage is not None and damage.startswith(RECORD_LOST) else []
        text = "; ".join([*record_lost, *([THOUGHTS_LOST + missing] if missing else [])])
        connection.execute("UPDATE sessions SET damage = ? WHERE id = ?", (text or damage, session_id))
        if text:
            losses.append(SessionLoss(str(session_id), _decoded(title), text))
    return losses


def _repair_register(connection: apsw.Connection) -> list[SessionLoss]:
    """Register the sessions that survived, name those that did not, and recompute the counters."""
    connection.execute("INSERT OR IGNORE INTO session_register (id) SELECT id FROM sessions")
    connection.execute(
        "UPDATE session_register SET gone = NULL, gone_at = NULL, hash = NULL WHERE id IN (SELECT id FROM sessions)"
    )
    missing = connection.execute(
        "UPDATE session_register SET gone = ?, gone_at = (SELECT coalesce(max(at), 0) FROM events)"
        " WHERE gone IS NULL AND id NOT IN (SELECT id FROM sessions) RETURNING id",
        (LOST,),
    ).fetchall()
    heads = connection.execute(
        "SELECT CAST(head_hash AS BLOB) FROM sessions"
        " UNION ALL SELECT CAST(hash AS BLOB) FROM session_register WHERE gone IS NOT NULL"
    )
    connection.execute(
        "UPDATE event_head SET sessions = (SELECT count(*) FROM session_register), heads_sum = ?",
        (total(None if head is None else _decoded(head) for (head,) in heads.fetchall()),),
    )
    connection.execute("UPDATE event_head SET epoch = lower(hex(randomblob(16))) WHERE length(epoch) <> 32")
    return [SessionLoss(str(session_id), "its title is gone too", ALL_LOST) for (session_id,) in sorted(missing)]


def _missing_numbers(connection: apsw.Connection, session_id: str, expected: int) -> str:
    ranges = []
    following = 1
    numbers = connection.execute("SELECT number FROM thoughts WHERE session_id = ? ORDER BY number", (session_id,))
    for (number,) in [*numbers.fetchall(), (expected + 1,)]:
        present = int(str(number))
        if present > following:
            ranges.append(numbers_text(following, present - 1))
        following = max(following, present + 1)
    return ", ".join(ranges)
