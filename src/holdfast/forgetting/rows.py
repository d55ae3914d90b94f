"""The rows of a project in every table, apart from reasoning sessions, which go one by one (reasoning/upkeep.py).

Each step can be repeated: a removal that was cut off begins again at the first one. `TABLES` names every table of the
schema and what becomes of it, and a test holds it against the schema.
"""
# ruff: noqa: S608 - the texts are put together from constants alone

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from holdfast.bridge import project_tasks
from holdfast.bridge import upkeep as bridge_upkeep
from holdfast.briefing import incarnations
from holdfast.forgetting.scope import Scope, quoted
from holdfast.history import queries as history_queries
from holdfast.protocol import queries as protocol_queries
from holdfast.store import Row, Store, Tx
from holdfast.store.copying import Progress
from holdfast.teams import queries as team_queries
from holdfast.teams.agents.project_key import project_key

ROWS_AT_ONCE = 2000

TABLES = {
    "agent_sessions": "by root and key",
    "api_keys": "nothing of a project",
    "asks": "with their conversations",
    "audit": "nothing of a project: ids, addresses and client names",
    "branches": "with their session",
    "bridge_chats": "by target",
    "bridge_incarnations": "by target",
    "bridge_messages": "by target",
    "bridge_received": "nothing of a project",
    "bridge_targets": "by target",
    "bridge_tasks": "by target",
    "bridge_updates": "by target",
    "calls": "by caller, and by what a result names",
    "connections": "the row stays, without the root",
    "conversations": "by team, in both directions",
    "daemons": "nothing of a project",
    "event_head": "nothing of a project",
    "events": "an empty place stays, because a gap means that an event was lost",
    "forgotten_projects": "a hash, on purpose: transcripts from before are not read again",
    "history_files": "by path",
    "history_lines": "with their file",
    "leases": "nothing of a project",
    "ledgers": "by root and key",
    "notices": "by team, in both directions",
    "permissions": "by team",
    "project_tasks": "by root and key",
    "projects": "by root and key",
    "protocol_evidence": "with its run",
    "protocol_gates": "with their run",
    "protocol_mirror": "by root",
    "protocol_runs": "by root and key",
    "protocol_trust": "by root",
    "protocol_violations": "with their run",
    "recoveries": "by root",
    "requests": "nothing of a project: tool names and durations",
    "schema_migrations": "nothing of a project",
    "session_links": "with either session",
    "session_register": "id and hash stay, on purpose: a missing session would look like a loss",
    "sessions": "by root and key",
    "signing_keys": "nothing of a project",
    "thoughts": "with their session",
    "tokens": "nothing of a project",
    "transcript_lines": "with their agent's session or conversation",
}
"""What becomes of each table when a project is forgotten."""


async def remove(store: Store, scope: Scope, progress: Progress) -> Counter[str]:
    """Remove what a project has outside reasoning; how much there was, by what it is called in the report."""
    # Calls first: which callers are the project's is told by rows that go after them.
    await _remove_calls(store, scope, lambda share: progress(0.4 * share, "answers of calls"))
    removed: Counter[str] = Counter()
    for root in scope.roots:
        removed["runs"] += await store.write(partial(protocol_queries.forget, root=root.uri, project=root.key))
        await store.write(partial(project_tasks.forget, root=root))
        removed["agent_sessions"] += await store.write(partial(incarnations.forget, root=root))
    for team in scope.teams:
        removed["messages"] += await store.write(partial(bridge_upkeep.forget, target=team))
        removed["asks"] += await store.write(partial(team_queries.forget, team=team))
    for path in sorted(scope.paths):
        removed["history_files"] += await store.write(partial(history_queries.forget_project, root=path))
        await store.write(partial(_remove_orphaned_lines, folder=project_key(Path(path))))
    for uri in sorted(scope.uris):
        await store.write(partial(_leave_connections, uri=uri))
    await _empty_events(store, scope, lambda share: progress(0.4 + 0.6 * share, "events"))
    for uri in sorted(scope.uris):  # once more: until now there were events to be mirrored
        await store.write(partial(protocol_queries.forget_mirror, root=uri))
    return removed


def found(tx: Tx, scope: Scope) -> Counter[str]:
    """What there is of a project, as `remove` counts it, with its reasoning sessions."""
    counted: Counter[str] = Counter()

    def count(name: str, sql: str, **params: str | None) -> None:
        counted[name] += int((tx.one(f"SELECT count(*) AS n FROM {sql}", **params) or {"n": 0})["n"])

    for root in scope.roots:
        # A root of the same key is counted with itself alone, or each would count them all.
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


def conversations(tx: Tx, scope: Scope) -> list[str]:
    """The agents' sessions of every conversation with the project's teams and of them."""
    sql = "SELECT session_id FROM conversations WHERE to_team = :team OR from_team = :team"
    return [str(row["session_id"]) for team in scope.teams for row in tx.all(sql, team=team)]


# -- what belongs to nobody by a column of its own --------------------------------------------------------------------


async def _remove_calls(store: Store, scope: Scope, progress: Callable[[float], None]) -> None:
    """Remove stored results of the project's callers, and those that name it, a session or a run of it."""
    callers, runs = await store.read(lambda tx: (_callers(tx, scope), _runs(tx, scope)))
    mentions = _mentions(scope, runs)
    total = max(1, int((await store.read(lambda tx: tx.one("SELECT count(*) AS n FROM calls")) or {"n": 0})["n"]))
    last = {"caller": "", "call_key": "", "tool": "", "arguments": ""}
    seen = 0
    while rows := await store.read(partial(_calls_after, last=dict(last))):
        gone = [row for row in rows if row["caller"] in callers or mentions.search(row["result"])]
        await store.write(partial(_drop_calls, rows=gone))
        last = {name: rows[-1][name] for name in last}
        seen += len(rows)
        progress(min(1.0, seen / total))


def _callers(tx: Tx, scope: Scope) -> set[str]:
    callers: set[str] = set()
    for uri in scope.uris:
        rows = tx.all(
            "SELECT identity FROM connections WHERE identity IS NOT NULL AND (root_uri = :root OR bound_root = :root)",
            root=uri,
        )
        callers |= {str(row["identity"]) for row in rows}
        rows = tx.all("SELECT session_id FROM agent_sessions WHERE root = :root", root=uri)
        callers |= {f"agent:{row['session_id']}" for row in rows}
    return callers


def _runs(tx: Tx, scope: Scope) -> set[str]:
    rows = [row for uri in scope.uris for row in tx.all("SELECT id FROM protocol_runs WHERE root = :root", root=uri)]
    return {str(row["id"]) for row in rows}


def _mentions(scope: Scope, runs: set[str]) -> re.Pattern[str]:
    """Finds in a result what makes it the project's: a path or URI of it, its team as the target, a run of it."""
    names = scope.names()
    parts = [names.pattern] if names is not None else []
    if scope.teams:
        teams = "|".join(map(re.escape, quoted(scope.teams)))
        parts.append(f'"(?:target|team|to|from|to_team|from_team)": ?(?:{teams})')
    if runs:
        parts.append(f'"session_id": ?(?:{"|".join(map(re.escape, quoted(sorted(runs))))})')
    return re.compile("|".join(parts) or "(?!)")


def _calls_after(tx: Tx, last: dict[str, str]) -> list[Row]:
    return tx.all(
        "SELECT caller, call_key, tool, arguments, result FROM calls"
        " WHERE (caller, call_key, tool, arguments) > (:caller, :call_key, :tool, :arguments)"
        " ORDER BY caller, call_key, tool, arguments LIMIT :limit",
        limit=ROWS_AT_ONCE,
        **last,
    )


def _drop_calls(tx: Tx, rows: list[Row]) -> None:
    for row in rows:
        tx.run(
            "DELETE FROM calls WHERE caller = :caller AND call_key = :key AND tool = :tool AND arguments = :arguments",
            caller=row["caller"],
            key=row["call_key"],
            tool=row["tool"],
            arguments=row["arguments"],
        )


def _leave_connections(tx: Tx, uri: str) -> None:
    """Take the root from connections; whoever is still connected there brings it again with its next call."""
    for column in ("root_uri", "bound_root"):
        tx.run(f"UPDATE connections SET {column} = NULL WHERE {column} = :root", root=uri)


def _remove_orphaned_lines(tx: Tx, folder: str) -> None:
    """Remove lines that came from the project's folder and that no session or conversation there is claims."""
    tx.run(
        "DELETE FROM transcript_lines WHERE project_key = :folder"
        " AND NOT EXISTS (SELECT 1 FROM agent_sessions s WHERE s.session_id = transcript_lines.session_id)"
        " AND NOT EXISTS (SELECT 1 FROM ledgers l WHERE l.session_id = transcript_lines.session_id)"
        " AND NOT EXISTS (SELECT 1 FROM conversations c WHERE c.session_id = transcript_lines.session_id)",
        folder=folder,
    )


async def _empty_events(store: Store, scope: Scope, progress: Callable[[float], None]) -> None:
    """Leave an empty place of every event that names a root, or tells of the project's team."""
    newest = max(1, int((await store.read(lambda tx: tx.one("SELECT seq AS n FROM event_head")) or {"n": 0})["n"]))
    last = 0
    while rows := await store.read(partial(_events_after, seq=last)):
        gone = [int(row["seq"]) for row in rows if _tells_of(row, scope)]
        await store.write(partial(_empty, numbers=gone))
        last = int(rows[-1]["seq"])
        progress(min(1.0, last / newest))


def _tells_of(event: Row, scope: Scope) -> bool:
    kind, subject, data = str(event["kind"]), str(event["subject"]), str(event["data"])
    if subject in scope.uris or any(uri in data for uri in quoted(scope.uris)):
        return True
    named = subject in scope.teams or any(name in data for name in quoted(scope.teams))
    return named and kind.startswith(("bridge.", "teams."))


def _events_after(tx: Tx, seq: int) -> list[Row]:
    return tx.all(
        "SELECT seq, kind, subject, data FROM events WHERE seq > :seq ORDER BY seq LIMIT :limit",
        seq=seq,
        limit=ROWS_AT_ONCE,
    )


def _empty(tx: Tx, numbers: list[int]) -> None:
    for seq in numbers:
        tx.run("UPDATE events SET kind = 'erased', subject = 'erased', data = '{}' WHERE seq = :seq", seq=seq)
