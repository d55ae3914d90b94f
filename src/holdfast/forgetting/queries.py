"""SQL of forgetting: a project's roots and rows in the tables of all capabilities."""
# ruff: noqa: S608 - the SQL is built from constants only

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from holdfast.forgetting.model import Counts, Scope
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx

ROOTS = (
    ("projects", "root_uri"),
    ("sessions", "root_uri"),
    ("connections", "root_uri"),
    ("connections", "bound_root"),
    ("agent_sessions", "root"),
    ("ledgers", "root"),
    ("recoveries", "root"),
    ("project_tasks", "root"),
    ("protocol_runs", "root"),
    ("protocol_trust", "root"),
)
"""Every column that holds the URI of a project's root; imported history has paths instead."""
KEYS = (
    ("projects", "root_uri", "project_key"),
    ("sessions", "root_uri", "project_key"),
    ("agent_sessions", "root", "project_key"),
    ("ledgers", "root", "project_key"),
    ("project_tasks", "root", "project_key"),
    ("protocol_runs", "root", "project"),
)
"""Columns of a root and the project key beside it, which all roots of the project share."""
BY_ROOT = {
    "sessions": "sessions WHERE root_uri = :value",
    "thoughts": "thoughts t JOIN sessions s ON s.id = t.session_id WHERE s.root_uri = :value",
    "runs": "protocol_runs WHERE root = :value",
    "agent_sessions": "agent_sessions WHERE root = :value",
}
"""What is counted per root: counted by key, each root would count all of them."""
BY_TEAM = {
    "messages": "bridge_messages WHERE target = :value",
    "asks": "asks a JOIN conversations c ON c.id = a.conversation_id WHERE c.to_team = :value OR c.from_team = :value",
}
BY_PATH = {"history_files": "history_files WHERE root = :value"}
ROWS_AT_ONCE = 2000


@dataclass(frozen=True, slots=True)
class StoredCall:
    """The stored result of a call, and what it is found by."""

    caller: str = ""
    call_key: str = ""
    tool: str = ""
    arguments: str = ""
    result: str = ""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event of the log."""

    seq: int
    kind: str
    subject: str
    data: str


# -- roots and sessions ------------------------------------------------------------------------------------------------


def keys_of(tx: Tx, root: str) -> set[str]:
    """Return the keys stored beside a root."""
    return {
        row["key"]
        for table, column, key in KEYS
        for row in tx.all(f"SELECT DISTINCT {key} AS key FROM {table} WHERE {column} = :root", root=root)
    } - {None}


def roots_of(tx: Tx, key: str) -> list[str]:
    """Return the roots stored beside a key."""
    return [
        row["root"]
        for table, column, name in KEYS
        for row in tx.all(f"SELECT DISTINCT {column} AS root FROM {table} WHERE {name} = :key", key=key)
        if row["root"]
    ]


def known(tx: Tx) -> set[str]:
    """Return every root in any table."""
    return {
        str(row["root"])
        for table, column in ROOTS
        for row in tx.all(f"SELECT DISTINCT {column} AS root FROM {table} WHERE {column} IS NOT NULL")
    }


def imported_directories(tx: Tx) -> list[str]:
    """Return the directories of imported history."""
    return [row["root"] for row in tx.all("SELECT DISTINCT root FROM history_files")]


def latest_sessions(tx: Tx, limit: int) -> list[tuple[str, str]]:
    """Return the ids and titles of reasoning sessions, the latest first."""
    rows = tx.all("SELECT id, title FROM sessions ORDER BY updated_at DESC LIMIT :limit", limit=limit)
    return [(row["id"], row["title"]) for row in rows]


def thought_count(tx: Tx, session_id: str) -> int | None:
    """Return how many thoughts a reasoning session has; None if there is no such session."""
    row = tx.one("SELECT thought_count FROM sessions WHERE id = :id", id=session_id)
    return int(row["thought_count"]) if row else None


def counts(tx: Tx, scope: Scope) -> Counts:
    """Count a project's rows as `rows.remove` does, plus its reasoning sessions."""
    counted: Counter[str] = Counter()
    for sources, values in ((BY_ROOT, scope.uris), (BY_TEAM, scope.teams), (BY_PATH, scope.paths)):
        for name, source in sources.items():
            counted[name] = sum(_number(tx, f"SELECT count(*) AS n FROM {source}", value) for value in values)
    return Counts(**counted)


def _number(tx: Tx, sql: str, value: str | None = None) -> int:
    row = tx.one(sql) if value is None else tx.one(sql, value=value)
    return int(row["n"]) if row else 0


# -- a project's rows --------------------------------------------------------------------------------------------------


def callers(tx: Tx, scope: Scope) -> set[str]:
    """Return the project's callers: its connections and agent sessions."""
    sql = "SELECT identity FROM connections WHERE identity IS NOT NULL AND (root_uri = :root OR bound_root = :root)"
    agents = "SELECT 'agent:' || session_id AS identity FROM agent_sessions WHERE root = :root"
    return {str(row["identity"]) for uri in scope.uris for row in (*tx.all(sql, root=uri), *tx.all(agents, root=uri))}


def runs(tx: Tx, scope: Scope) -> set[str]:
    """Return the ids of the project's protocol runs."""
    sql = "SELECT id FROM protocol_runs WHERE root = :root"
    return {str(row["id"]) for uri in scope.uris for row in tx.all(sql, root=uri)}


def run_roots(tx: Tx, scope: Scope) -> set[str]:
    """Return the worktrees of the project's protocol runs."""
    sql = "SELECT DISTINCT root FROM protocol_runs WHERE root = :root OR project = :project"
    found = (tx.all(sql, root=root.uri, project=root.key or root.uri) for root in scope.roots)
    return {str(row["root"]) for rows in found for row in rows}


def conversations(tx: Tx, scope: Scope) -> list[str]:
    """Return the agent sessions of every conversation to or from the project's teams."""
    sql = "SELECT session_id FROM conversations WHERE to_team = :team OR from_team = :team"
    return [str(row["session_id"]) for team in scope.teams for row in tx.all(sql, team=team)]


def count_calls(tx: Tx) -> int:
    return _number(tx, "SELECT count(*) AS n FROM calls")


def calls_after(tx: Tx, last: StoredCall) -> list[StoredCall]:
    """Return a batch of stored call results after the given one."""
    rows = tx.all(
        "SELECT caller, call_key, tool, arguments, result FROM calls"
        " WHERE (caller, call_key, tool, arguments) > (:caller, :key, :tool, :arguments)"
        " ORDER BY caller, call_key, tool, arguments LIMIT :limit",
        caller=last.caller,
        key=last.call_key,
        tool=last.tool,
        arguments=last.arguments,
        limit=ROWS_AT_ONCE,
    )
    return [StoredCall(**row) for row in rows]


def drop_calls(tx: Tx, calls: Iterable[StoredCall]) -> None:
    """Delete stored call results."""
    for call in calls:
        tx.run(
            "DELETE FROM calls WHERE caller = :caller AND call_key = :key AND tool = :tool AND arguments = :arguments",
            caller=call.caller,
            key=call.call_key,
            tool=call.tool,
            arguments=call.arguments,
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


def newest_event(tx: Tx) -> int:
    """Return the number of the newest event."""
    return _number(tx, "SELECT seq AS n FROM event_head")


def events_after(tx: Tx, seq: int) -> list[StoredEvent]:
    """Return a batch of events after a number."""
    sql = "SELECT seq, kind, subject, data FROM events WHERE seq > :seq ORDER BY seq LIMIT :limit"
    return [StoredEvent(**row) for row in tx.all(sql, seq=seq, limit=ROWS_AT_ONCE)]


def empty_events(tx: Tx, numbers: Iterable[int]) -> None:
    """Empty these events but keep their numbers: the log must have no gaps."""
    for seq in numbers:
        tx.run("UPDATE events SET kind = 'erased', subject = 'erased', data = '{}' WHERE seq = :seq", seq=seq)
