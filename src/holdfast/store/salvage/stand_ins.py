"""Recreates lost conversations and runs as marked placeholders, so that the rows that belong to them are kept."""

from __future__ import annotations

import json
import uuid

import apsw

from holdfast.store.salvage.damaged_file import DamagedFile
from holdfast.store.salvage.raw_pages import Values

RECORD_LOST = "Recovered: the record of it was lost with a part of the database."
NO_PROTOCOL = json.dumps({"name": "recovered", "transitions": [], "checklist": []})
CONVERSATION_SESSIONS = "sqlite_autoindex_conversations_1"
CONVERSATION_PAIRS = "sqlite_autoindex_conversations_2"
RUN_NUMBERS = "sqlite_autoindex_protocol_runs_1"
RUNS_BY_PROJECT = "protocol_history"


def stand_in_for_conversations(connection: apsw.Connection, source: DamagedFile) -> None:
    """Recreate conversations that asks refer to: with the teams and session from an index, otherwise archived."""
    missing = connection.execute(
        "SELECT conversation_id, min(to_team), 2 * sum(answer IS NOT NULL), min(created_at), max(created_at)"
        " FROM asks WHERE conversation_id NOT IN (SELECT id FROM conversations) GROUP BY conversation_id"
    ).fetchall()
    pairs = _by_row(source, CONVERSATION_PAIRS) if missing else {}
    sessions = _by_row(source, CONVERSATION_SESSIONS) if missing else {}
    for row_id, to_team, messages, created, used in missing:
        pair, session = pairs.get(row_id), sessions.get(row_id)
        whole = _texts(pair, 3) and _texts(session, 1)
        connection.execute(
            "INSERT OR IGNORE INTO conversations (id, from_team, to_team, thread, session_id, begun, status,"
            " message_count, compacted_count, note, created_at, last_used_at, last_started_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)",
            (
                row_id,
                *(pair[:3] if pair and whole else ("", to_team, f"recovered-{row_id}")),
                session[0] if session and whole else str(uuid.uuid4()),
                int(whole),
                "active" if whole else "archived",
                messages,
                RECORD_LOST,
                created,
                used,
                used,
            ),
        )


def stand_in_for_runs(connection: apsw.Connection, source: DamagedFile) -> None:
    """Recreate, as ended, the runs that gates, evidence and violations refer to; with their number if it is known."""
    missing = connection.execute(
        "SELECT run, min(at), max(at) FROM (SELECT run, checked_at AS at FROM protocol_gates"
        " UNION ALL SELECT run, at FROM protocol_evidence UNION ALL SELECT run, at FROM protocol_violations)"
        " WHERE run NOT IN (SELECT row_id FROM protocol_runs) GROUP BY run"
    ).fetchall()
    numbers = _by_row(source, RUN_NUMBERS) if missing else {}
    projects = {entry[-1]: entry for entry in source.index_entries(RUNS_BY_PROJECT)} if missing else {}
    for row_id, started, touched in missing:
        row = numbers.get(row_id)
        known = _texts(row, 2) and row is not None and isinstance(row[2], int)
        project = row[0] if row and known else (projects.get(row_id) or ("recovered",))[0]
        day, number = (row[1], row[2]) if row and known else ("recovered", row_id)
        connection.execute(
            "INSERT OR IGNORE INTO protocol_runs (row_id, id, day, number, root, project, protocol, definition,"
            " objective, phase, status, started_at, touched_at, ended_at, summary)"
            " VALUES (:row, :id, :day, :number, :project, :project, 'recovered', :definition, :lost, 'INIT',"
            " 'orphaned', :started, :touched, :touched, :lost)",
            {
                "row": row_id,
                "id": f"{day}-session-{number:02d}",
                "day": day,
                "number": number,
                "project": project if isinstance(project, str) else "recovered",
                "definition": NO_PROTOCOL,
                "lost": RECORD_LOST,
                "started": started,
                "touched": touched,
            },
        )


def _by_row(source: DamagedFile, index: str) -> dict[object, Values]:
    """Return the entries of an index, by rowid."""
    return {entry[-1]: entry for entry in source.index_entries(index)}


def _texts(entry: Values | None, count: int) -> bool:
    return entry is not None and all(isinstance(value, str) for value in entry[:count])
