"""SQL of forgetting: a project's rows in the tables of all capabilities. Functions of a transaction."""
# ruff: noqa: S608 - the texts are put together from constants alone

from __future__ import annotations

from collections import Counter

from holdfast.forgetting.model import Scope
from holdfast.store import Row, Tx

ROWS_AT_ONCE = 2000


def found(tx: Tx, scope: Scope) -> Counter[str]:
    """Count a project's rows as `remove` does, plus its reasoning sessions."""
    counted: Counter[str] = Counter()

    def count(name: str, sql: str, **params: str | None) -> None:
        counted[name] += int((tx.one(f"SELECT count(*) AS n FROM {sql}", **params) or {"n": 0})["n"])

    for root in scope.roots:
        # Each root with the same key is counted alone, or each would count them all.
        count("sessions", "sessions WHERE root_uri = :root", root=root.uri)
        count(
            "thoughts",
            "thoughts t JOIN sessions s ON s.id = t.session_id WHERE s.root_uri = :root",
            root=root.uri,
        )
        count("runs", "protocol_runs WHERE root = :root", root=root.uri)
        count("agent_sessions", "agent_sessions WHERE root = :root", root=root.uri)
    for team in scope.teams:
        count("messages", "bridge_messages WHERE target = :team", team=team)
        count(
            "asks",
            "asks a JOIN conversations c ON c.id = a.conversation_id WHERE c.to_team = :team OR c.from_team = :team",
            team=team,
        )
    for path in scope.paths:
        count("history_files", "history_files WHERE root = :root", root=path)
    return counted


def callers(tx: Tx, scope: Scope) -> set[str]:
    """Return the project's callers: its connections and agent sessions."""
    found: set[str] = set()
    for uri in scope.uris:
        rows = tx.all(
            "SELECT identity FROM connections WHERE identity IS NOT NULL AND (root_uri = :root OR bound_root = :root)",
            root=uri,
        )
        found |= {str(row["identity"]) for row in rows}
        rows = tx.all("SELECT session_id FROM agent_sessions WHERE root = :root", root=uri)
        found |= {f"agent:{row['session_id']}" for row in rows}
    return found


def runs(tx: Tx, scope: Scope) -> set[str]:
    """Return the ids of the project's protocol runs."""
    rows = [row for uri in scope.uris for row in tx.all("SELECT id FROM protocol_runs WHERE root = :root", root=uri)]
    return {str(row["id"]) for row in rows}


def calls_after(tx: Tx, last: dict[str, str]) -> list[Row]:
    """Return a batch of stored call results after the given one."""
    return tx.all(
        "SELECT caller, call_key, tool, arguments, result FROM calls"
        " WHERE (caller, call_key, tool, arguments) > (:caller, :call_key, :tool, :arguments)"
        " ORDER BY caller, call_key, tool, arguments LIMIT :limit",
        limit=ROWS_AT_ONCE,
        **last,
    )


def drop_calls(tx: Tx, rows: list[Row]) -> None:
    """Delete stored call results."""
    for row in rows:
        tx.run(
            "DELETE FROM calls WHERE caller = :caller AND call_key = :key AND tool = :tool AND arguments = :arguments",
            caller=row["caller"],
            key=row["call_key"],
            tool=row["tool"],
            arguments=row["arguments"],
        )


def clear_connection_roots(tx: Tx, uri: str) -> None:
    """Clear the root of its connections; a client that is still connected sets it again with its next call."""
    for column in ("root_uri", "bound_root"):
        tx.run(f"UPDATE connections SET {column} = NULL WHERE {column} = :root", root=uri)


def remove_orphaned_lines(tx: Tx, folder: str) -> None:
    """Delete lines from the project's folder that belong to no existing session or conversation."""
    tx.run(
        "DELETE FROM transcript_lines WHERE project_key = :folder"
        " AND NOT EXISTS (SELECT 1 FROM agent_sessions s WHERE s.session_id = transcript_lines.session_id)"
        " AND NOT EXISTS (SELECT 1 FROM ledgers l WHERE l.session_id = transcript_lines.session_id)"
        " AND NOT EXISTS (SELECT 1 FROM conversations c WHERE c.session_id = transcript_lines.session_id)",
        folder=folder,
    )


def events_after(tx: Tx, seq: int) -> list[Row]:
    """Return a batch of events after a number."""
    return tx.all(
        "SELECT seq, kind, subject, data FROM events WHERE seq > :seq ORDER BY seq LIMIT :limit",
        seq=seq,
        limit=ROWS_AT_ONCE,
    )


def empty_events(tx: Tx, numbers: list[int]) -> None:
    """Empty these events but keep their numbers: the log must have no gaps."""
    for seq in numbers:
        tx.run("UPDATE events SET kind = 'erased', subject = 'erased', data = '{}' WHERE seq = :seq", seq=seq)


def conversations(tx: Tx, scope: Scope) -> list[str]:
    """Return the agent sessions of every conversation to or from the project's teams."""
    sql = "SELECT session_id FROM conversations WHERE to_team = :team OR from_team = :team"
    return [str(row["session_id"]) for team in scope.teams for row in tx.all(sql, team=team)]


def count_calls(tx: Tx) -> int:
    """Return the number of stored call results."""
    return int((tx.one("SELECT count(*) AS n FROM calls") or {"n": 0})["n"])


def newest_event(tx: Tx) -> int:
    """Return the number of the newest event."""
    return int((tx.one("SELECT seq AS n FROM event_head") or {"n": 0})["n"])


def session(tx: Tx, session_id: str) -> Row | None:
    """Return the title and length of a reasoning session."""
    return tx.one("SELECT title, thought_count FROM sessions WHERE id = :id", id=session_id)
