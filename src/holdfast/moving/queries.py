"""SQL of `holdfast move`: moves the rows of all capabilities to a project's new root. Functions of a transaction."""
# ruff: noqa: S608 - the SQL is built from constants only

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from holdfast.errors import Conflict
from holdfast.forgetting.queries import KEYS, ROOTS, known
from holdfast.identity.project import Root, path_of
from holdfast.moving.model import Move, Transcript
from holdfast.store import Tx

STAYS = frozenset({"protocol_trust", "projects"})
"""Not moved: trust was given to a directory, and a new root gets its own project row."""
ONE_PER_ROOT = {"project_tasks": "owner"}
"""Tables with one row per root and value of another column; an existing row of the new root wins, being newer."""


def roots_in(tx: Tx, uri: str) -> list[str]:
    """Return every known root that is this directory or inside it."""
    return sorted(root for root in known(tx) if f"{root}/".startswith(f"{uri}/"))


def transcripts(tx: Tx, roots: Iterable[str], machine: str) -> list[Transcript]:
    """Return the transcripts of these roots' agent sessions on a machine."""
    sql = "SELECT session_id, transcript FROM agent_sessions WHERE root = :root AND machine = :machine"
    return [
        Transcript(row["session_id"], root, Path(row["transcript"]))
        for root in roots
        for row in tx.all(sql, root=root, machine=machine)
        if row["transcript"]
    ]


def move(tx: Tx, moves: Sequence[Move], copied: Iterable[Transcript]) -> Counter[str]:
    """Change every row of the old roots; returns the counts by table."""
    changed: Counter[str] = Counter()
    keys = {table: (column, key) for table, column, key in KEYS}
    for old, new in ((one.old, one.new) for one in moves):
        active = "SELECT 1 FROM protocol_runs WHERE root = :root AND status = 'active'"
        if tx.one(active, root=old) and tx.one(active, root=new.uri):
            raise Conflict(f"Both {path_of(old)} and {path_of(new.uri)} have an active session.", recovery="End one.")
        for table, column in ROOTS:
            if table in STAYS:
                continue
            if beside := ONE_PER_ROOT.get(table):
                twice = f"SELECT {beside} FROM {table} WHERE {column} = :new"
                tx.run(f"DELETE FROM {table} WHERE {column} = :old AND {beside} IN ({twice})", old=old, new=new.uri)
            if table == "ledgers":
                _rewrite_paths(tx, old, new)
            changed[table] += tx.run(f"UPDATE {table} SET {column} = :new WHERE {column} = :old", old=old, new=new.uri)
            if table in keys and table != "protocol_runs" and keys[table][0] == column:
                tx.run(f"UPDATE {table} SET {keys[table][1]} = :key WHERE {column} = :new", key=new.key, new=new.uri)
        if new.key is not None:
            # A run of the new root may have the same number on the same day; then the old key stays.
            tx.run(
                "UPDATE protocol_runs SET project = :key WHERE root = :new AND project <> :key AND NOT EXISTS"
                " (SELECT 1 FROM protocol_runs o WHERE o.project = :key AND o.day = protocol_runs.day"
                " AND o.number = protocol_runs.number)",
                key=new.key,
                new=new.uri,
            )
        _move_project(tx, old, new)
    for one in copied:
        for table in ("agent_sessions", "ledgers"):
            tx.run(
                f"UPDATE {table} SET transcript = :path WHERE session_id = :id", path=str(one.path), id=one.session_id
            )
    tx.emit("project.moved", "project", {"roots": len(moves)})
    return +changed


def _move_project(tx: Tx, old: str, new: Root) -> None:
    row = tx.one("SELECT paused_at, first_commit FROM projects WHERE root_uri = :old", old=old)
    if row is None:
        return
    tx.run(
        "INSERT INTO projects (root_uri, project_key, paused_at, first_commit) VALUES (:new, :key, :paused, :commit)"
        " ON CONFLICT (root_uri) DO UPDATE SET paused_at = coalesce(projects.paused_at, excluded.paused_at)",
        new=new.uri,
        key=new.key,
        paused=row["paused_at"],
        commit=row["first_commit"],
    )
    tx.run("DELETE FROM projects WHERE root_uri = :old", old=old)


def _rewrite_paths(tx: Tx, old: str, new: Root) -> None:
    """Update file paths in session ledgers: every text that begins with the old directory."""
    before, after = path_of(old), path_of(new.uri)
    was, now = (json.dumps(str(path), ensure_ascii=False)[:-1] for path in (before, after))
    for row in tx.all("SELECT session_id, content FROM ledgers WHERE root = :old", old=old):
        content = str(row["content"]).replace(f'{was}"', f'{now}"').replace(f"{was}/", f"{now}/")
        tx.run("UPDATE ledgers SET content = :content WHERE session_id = :id", content=content, id=row["session_id"])
