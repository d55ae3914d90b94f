"""Two projects that have a row in every table, and all that is on disk of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
from tests.contract.conftest import Place

from holdfast.agents.claude.transcripts.folder_name import project_key
from holdfast.app import App, build
from holdfast.config import read_settings
from holdfast.identity.project import canonical_uri
from holdfast.store import Store, Tx
from holdfast.store.copying import SEARCH_INDEXES

SECRET, KEPT = "xylophone", "harmonica"
"""In everything of the project that is forgotten, and in everything of its neighbour."""
SESSIONS = {SECRET: "session-one", KEPT: "session-two"}
NUMBERS = {SECRET: 1, KEPT: 11}

NOBODYS = {"api_keys", "bridge_received", "daemons", "event_head", "events", "forgotten_projects", "leases"}
NOBODYS |= {"browser_sessions", "schema_migrations", "signing_keys"}
"""Tables of which no row is a project's, and events, which are emitted."""


def rows_of(project: Path, mark: str) -> dict[str, list[dict[str, Any]]]:
    """A row of a project for every table that can hold one, in an order in which they can be put there."""
    session, number, team, text = SESSIONS[mark], NUMBERS[mark], f"team-{mark}", f"the {mark} of {project}"
    root, key, folder, run = canonical_uri(str(project)), f"example.org/{mark}", project_key(project), f"run-{number}"
    talk = {"thread": text, "begun": 1, "status": "active", "message_count": 1, "compacted_count": 0, "note": text}
    talk |= {"summary": text, "created_at": 1, "last_used_at": 1, "last_started_at": 1}
    ask = {"text": text, "chain": "[]", "status": "done", "attempts": 1, "answer": text, "error": text, "created_at": 1}
    notice = {"text": text, "created_at": 1, "expires_at": 1}
    permission = {"tool": "t", "input": text, "created_at": 1, "expires_at": 1}
    line = {"project_key": folder, "subpath": "", "entry": text, "at": 1}
    by_relay = {"caller": "relay", "tool": "t", "arguments": "h", "at": 1}
    return {
        "projects": [{"root_uri": root, "project_key": key}],
        "session_register": [{"id": session}],
        "sessions": [
            {"id": session, "title": text, "tags": text, "domain": text, "status": "active", "pinned": 0}
            | {"root_uri": root, "project_key": key, "thought_count": 1, "branch_count": 1, "head_hash": "ab"}
            | {"created_at": 1, "updated_at": 1}
        ],
        "session_links": [{"session_id": session, "linked_id": session, "at": 1}],
        "session_roots": [{"session_id": session, "root_uri": f"{root}/linked", "project_key": None, "at": 1}],
        "branches": [{"session_id": session, "branch_id": text, "from_number": 1, "thought_count": 1, "created_at": 1}],
        "thoughts": [
            {"row_id": number, "session_id": session, "number": 1, "content": text, "next_needed": 0}
            | {"is_revision": 0, "branch_id": text, "needs_more": 0, "created_at": 1, "prev_hash": "a", "hash": "b"}
        ],
        "connections": [
            {"id": session, "identity": f"agent:{session}", "transport": "relay", "era": "legacy", "root_uri": root}
            | {"bound_root": root, "reasoning_session": session, "created_at": 1, "seen_at": 1}
        ],
        "tokens": [
            {"jti": session, "connection_id": session, "hash": session, "kid": "k", "issued_at": 1, "expires_at": 1}
        ],
        "audit": [{"at": 1, "action": "a", "outcome": "b", "connection_id": session, "times": 1}],
        "requests": [{"connection_id": session, "tool": "t", "at": 1, "duration_us": 1, "outcome": "ok"}],
        "calls": [
            by_relay | {"caller": f"agent:{session}", "call_key": "k", "result": text},
            by_relay | {"call_key": f"{session}-1", "result": json.dumps({"at": f"{project}/src/{mark}.py"})},
            by_relay | {"call_key": f"{session}-2", "result": json.dumps({"target": team, "said": mark})},
            by_relay | {"call_key": f"{session}-3", "result": json.dumps({"session_id": run, "said": mark})},
            by_relay | {"call_key": f"{session}-4", "result": json.dumps({"sessionId": session, "said": mark})},
        ],
        "conversations": [
            talk | {"id": number, "from_team": "", "to_team": team, "session_id": f"{session}-talk"},
            talk | {"id": number + 1, "from_team": team, "to_team": "third", "session_id": f"{session}-said"},
        ],
        "asks": [
            ask | {"id": f"{session}-a", "conversation_id": number, "to_team": team},
            ask | {"id": f"{session}-b", "conversation_id": number + 1, "to_team": "third"},
        ],
        "notices": [
            notice | {"id": f"{session}-a", "from_team": "third", "to_team": team},
            notice | {"id": f"{session}-b", "from_team": team, "to_team": "third"},
        ],
        "permissions": [
            permission | {"id": f"{session}-a", "ask_id": f"{session}-a", "team": team},
            permission | {"id": f"{session}-b", "ask_id": f"{session}-b", "team": "third"},
        ],
        "transcript_lines": [
            line | {"session_id": f"{session}{of}", "uuid": f"{session}{of}"} for of in ("", "-talk", "-lost")
        ],
        "protocol_runs": [
            {"row_id": number, "id": run, "day": text, "number": 1, "root": root, "project": key, "protocol": "p"}
            | {"definition": text, "objective": text, "branch": text, "phase": "x", "status": "done"}
            | {"started_at": 1, "touched_at": 1, "summary": text, "decisions": text, "notes": text}
        ],
        "protocol_gates": [{"run": number, "gate": text, "status": "pass", "evidence": text, "checked_at": 1}],
        "protocol_evidence": [
            {"run": number, "gate": text, "kind": "k", "subject": text, "detail": text, "source": "s", "at": 1}
        ],
        "protocol_violations": [
            {"run": number, "at": 1, "phase": text, "requirement": text, "severity": "s", "recovery": text}
        ],
        "protocol_trust": [{"root": root, "digest": text, "at": 1}],
        "bridge_targets": [{"target": team, "incarnation": 1, "last_seen_at": 1}],
        "bridge_messages": [
            {"id": session, "target": team, "seq": 1, "text": text, "fingerprint": text, "sender": text, "source": "s"}
            | {"priority": 1, "status": "done", "attempts": 1, "outcome": text, "reply": text}
            | {"created_at": 1, "expires_at": 1}
        ],
        "bridge_updates": [
            {"target": team, "seq": 1, "kind": "k", "message_id": text, "content": text, "data": text}
            | {"chat_only": 0, "created_at": 1}
        ],
        "bridge_incarnations": [{"target": team, "session_id": text, "previous": text, "source": "s", "started_at": 1}],
        "bridge_tasks": [
            {"target": team, "session_id": text, "current_task": text, "last_completed_step": text}
            | {"pending_messages": "[]", "updated_at": 1}
        ],
        "bridge_chats": [
            {"transport": "t", "target": team, "sent_seq": 1, "failure": text, "attempts": 1, "next_at": 1}
        ],
        "project_tasks": [
            {"root": root, "owner": session, "project_key": key, "session_id": text, "current_task": text}
            | {"last_completed_step": text, "pending_messages": "[]", "updated_at": 1}
        ],
        "agent_sessions": [
            {"session_id": session, "root": root, "project_key": key, "machine": "m", "transcript": text}
            | {"source": "s", "started_at": 1, "seen_at": 1, "told": text}
        ],
        "ledgers": [
            {"session_id": session, "root": root, "project_key": key, "machine": "m", "transcript": text}
            | {"file_mark": text, "read_to": 1, "content": text, "last_at": 1, "updated_at": 1}
        ],
        "recoveries": [
            {"root": root, "session_id": session, "recovered": text, "occasion": text, "what": text, "at": 1}
            | {"content": text}
        ],
        "history_files": [
            {"row_id": number, "machine": "another", "path": text, "session_id": session, "root": str(project)}
            | {"mark": text, "read_to": 1, "at": 1}
        ],
        "history_lines": [{"row_id": number, "file": number, "role": "user", "content": text, "at": 1}],
    }


def put(tx: Tx, table: str, row: dict[str, Any]) -> None:
    """Put a row into a table."""
    tx.run(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(f':{name}' for name in row)})", **row)


async def fill(store: Store, project: Path, mark: str) -> None:
    """Put what is a project's into every table, into the index and into the log of events."""
    root, team = canonical_uri(str(project)), f"team-{mark}"

    def write(tx: Tx) -> None:
        for table, rows in rows_of(project, mark).items():
            for row in rows:
                put(tx, table, row)
        for kind, subject in (
            ("protocol.started", "run"),
            ("protocol.trusted", root),
            ("connection.root_bound", "connection"),
            ("briefing.session", "agent"),
        ):
            tx.emit(kind, subject, {"root": root})
        tx.emit("bridge.undeliverable", team, {"reason": mark})
        tx.emit("bridge.queued", "message", {"target": team})
        tx.emit("teams.asked", "ask", {"to": team})
        tx.emit("reasoning.thought_recorded", SESSIONS[mark], {"of": mark})
        if tx.engine == "sqlite":
            for name in ("thoughts", "history"):
                tx.run(f"INSERT INTO {name}_fts (rowid, content) VALUES (:row, :mark)", row=NUMBERS[mark], mark=mark)

    await store.write(write)


EVENTS = 8
"""How many events are a project's."""


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator[App]:
    """The services on the store of a place."""
    store = place.open()
    try:
        yield build(store, read_settings({}, home=str(place.home)), "this-machine")
    finally:
        await store.close()


async def two_projects(place: Place, app: App) -> tuple[Path, Path]:
    """One to be forgotten, and its neighbour."""
    places = {mark: place.home.parent / f"{place.home.name}-{mark}" for mark in (SECRET, KEPT)}
    teams = {f"team-{mark}": {"project": str(project)} for mark, project in places.items()}
    (place.home / "teams.json").write_text(json.dumps({"teams": teams}))
    for mark, project in places.items():
        project.mkdir()
        await fill(app.store, project, mark)
    # What was changed before leaves its old text on pages that are free now.
    for content in (f"{SECRET} " * 10_000, SECRET):
        await _change_ledger(app.store, content)
    if place.engine == "postgres":  # its statistics hold values
        with psycopg.connect(place.url, autocommit=True) as connection:
            connection.execute("ANALYZE")
    assert any(SECRET[1:].encode() in content for content in files_of(place).values())
    return places[SECRET], places[KEPT]


async def _change_ledger(store: Store, content: str) -> None:
    sql = "UPDATE ledgers SET content = :content WHERE session_id = :id"
    await store.write(lambda tx: tx.run(sql, content=content, id=SESSIONS[SECRET]))


async def tables(store: Store) -> list[str]:
    """Every table of the schema, apart from those in which the words of others are indexed."""
    sql = {
        "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%\\_fts%' ESCAPE '\\'",
        "postgres": "SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()"
        " AND tablename NOT LIKE '%\\_fts'",
    }[store.engine]
    return sorted(row["name"] for row in await store.read(lambda tx: tx.all(sql)))


async def dump(store: Store) -> dict[str, list[str]]:
    """Every row of every table as text."""
    names = await tables(store) + (list(SEARCH_INDEXES) if store.engine == "postgres" else [])
    return await store.read(lambda tx: {name: [str(row) for row in tx.all(f"SELECT * FROM {name}")] for name in names})


def files_of(place: Place) -> dict[str, bytes]:
    """All that is on disk of the store, apart from the server's own log and the owner's settings."""
    found = [path for path in place.home.rglob("*") if path.is_file() and path.name != "teams.json"]
    if place.engine == "postgres":
        with psycopg.connect(place.url, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            row = connection.execute(
                "SELECT current_setting('data_directory'), oid FROM pg_database WHERE datname = current_database()"
            ).fetchone()
        assert row is not None
        found += [path for path in (Path(row[0]) / "base" / str(row[1])).iterdir() if path.is_file()]
    return {str(path): path.read_bytes() for path in found}


def assert_gone(place: Place) -> None:
    """The project that was to be forgotten is in no file."""
    for name, content in files_of(place).items():
        assert SECRET[1:].encode() not in content, name  # an index keeps what words have in common only once
