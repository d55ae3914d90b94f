"""Rows that survived a damaged database, made to agree with each other again."""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from holdfast.store.copying import quote, sqlite_tables
from holdfast.store.register import LOST, total
from holdfast.store.verify import LOST_EVENT, numbers_text

RECORD_LOST = "the session's record was lost"
THOUGHTS_LOST = "lost thoughts "
ALL_LOST = "lost as a whole"


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


def make_consistent(connection: apsw.Connection) -> tuple[list[Loss], list[SessionLoss]]:
    """Repair counters and references inside the caller's transaction; returns what could not be repaired."""
    present = {table.name for table in sqlite_tables(connection)}
    gaps: list[Loss] = []
    if {"event_head", "events"} <= present:
        _repair_event_counter(connection)
        gaps = _fill_event_gaps(connection)
    if {"sessions", "thoughts"} <= present:
        _repair_sessions(connection)
    if {"sessions", "thoughts", "branches"} <= present:
        _repair_branches(connection)
    orphans = _drop_orphans(connection)
    sessions = _name_lost_thoughts(connection) if {"sessions", "thoughts"} <= present else []
    if "session_register" in present:
        connection.execute("UPDATE event_head SET epoch = lower(hex(randomblob(16))) WHERE epoch = ''")
        sessions += _repair_register(connection)
    return [*gaps, *orphans], sessions


def _repair_event_counter(connection: apsw.Connection) -> None:
    connection.execute(
        "INSERT INTO event_head (id, seq) SELECT 1, coalesce(max(seq), 0) FROM events WHERE true"
        " ON CONFLICT (id) DO UPDATE SET seq = max(event_head.seq, excluded.seq)"
    )


def _fill_event_gaps(connection: apsw.Connection) -> list[Loss]:
    """Lost events leave a mark under their number: readers rely on a log without gaps, and so does its check."""
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


def _repair_sessions(connection: apsw.Connection) -> None:
    """Thoughts whose session is gone get a stand-in for it: what was thought is worth more than its title."""
    connection.execute(
        "INSERT INTO sessions (id, title, tags, status, pinned, thought_count, branch_count, head_hash, damage,"
        " created_at, updated_at)"
        " SELECT session_id, 'Recovered session', '[]', 'active', 0, max(number), count(DISTINCT branch_id), hash,"
        " ?, min(created_at), max(created_at)"
        " FROM thoughts WHERE session_id NOT IN (SELECT id FROM sessions) GROUP BY session_id",
        (RECORD_LOST,),
    )
    # An older copy of the record may have survived; the next thought must not take a number that exists.
    connection.execute(
        "UPDATE sessions SET thought_count = newest.number, head_hash = newest.hash"
        " FROM (SELECT session_id, max(number) AS number, hash FROM thoughts GROUP BY session_id) AS newest"
        " WHERE newest.session_id = sessions.id AND newest.number > sessions.thought_count"
    )


def _repair_branches(connection: apsw.Connection) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO branches (session_id, branch_id, from_number, thought_count, created_at)"
        " SELECT session_id, branch_id, coalesce(min(branch_from), min(number)), count(*), min(created_at)"
        " FROM thoughts WHERE branch_id IS NOT NULL GROUP BY session_id, branch_id"
    )


def _drop_orphans(connection: apsw.Connection) -> list[Loss]:
    """Rows that refer to a row which is gone, and then those that referred to them."""
    dropped: dict[tuple[str, str], int] = {}
    while orphans := connection.execute("PRAGMA foreign_key_check").fetchall():
        for table, rowid, parent, _ in orphans:
            delete = f"DELETE FROM {quote(str(table))} WHERE rowid = ?"  # noqa: S608 - a name from the catalog
            connection.execute(delete, (rowid,))
            key = (str(table), str(parent))
            dropped[key] = dropped.get(key, 0) + connection.changes()
    return [Loss(table, f"{count} rows that belonged to lost {parent}") for (table, parent), count in dropped.items()]


def _name_lost_thoughts(connection: apsw.Connection) -> list[SessionLoss]:
    incomplete = connection.execute(
        "SELECT s.id, s.title, s.thought_count, s.damage FROM sessions s LEFT JOIN thoughts t ON t.session_id = s.id"
        " GROUP BY s.id HAVING count(t.number) < s.thought_count OR s.damage IS NOT NULL ORDER BY s.id"
    ).fetchall()
    losses = []
    for session_id, title, expected, damage in incomplete:
        if damage is not None and not str(damage).startswith((RECORD_LOST, THOUGHTS_LOST)):
            continue  # a state of another's, such as a removal that has begun: thoughts are missing on purpose
        missing = _missing_numbers(connection, str(session_id), int(str(expected)))
        record_lost = [RECORD_LOST] if damage is not None and str(damage).startswith(RECORD_LOST) else []
        text = "; ".join([*record_lost, *([THOUGHTS_LOST + missing] if missing else [])])
        connection.execute("UPDATE sessions SET damage = ? WHERE id = ?", (text or damage, session_id))
        if text:
            losses.append(SessionLoss(str(session_id), str(title), text))
    return losses


def _repair_register(connection: apsw.Connection) -> list[SessionLoss]:
    """Register what survived, name the sessions of which nothing did, and count anew."""
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
        "SELECT head_hash FROM sessions UNION ALL SELECT hash FROM session_register WHERE gone IS NOT NULL"
    )
    connection.execute(
        "UPDATE event_head SET sessions = (SELECT count(*) FROM session_register), heads_sum = ?",
        (total(None if head is None else str(head) for (head,) in heads.fetchall()),),
    )
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
