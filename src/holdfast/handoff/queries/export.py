"""SQL of an export: reads a project's rows on one snapshot."""
# ruff: noqa: S608 - the SQL is built from constants only

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from holdfast.handoff.local_project import LocalProject
from holdfast.handoff.staging import Staged
from holdfast.handoff.tables import TABLES
from holdfast.reasoning.model import FORGETTING
from holdfast.store import Row, Tx

AT_ONCE = 20
"""Ids per query."""
THOUGHTS_AT_ONCE = 20
OPEN_ASKS = ("waiting", "running")


def gather(tx: Tx, project: LocalProject, into: Staged) -> None:
    """Add every row of the project, by table, in a stable order."""
    into.clear()  # PostgreSQL may have it done again
    _reasoning(tx, project, into)
    _protocol(tx, project, into)
    for name in ("ledgers", "agent_sessions"):
        sql = f"SELECT {TABLES[name].selected} FROM {name} WHERE root = :root OR project_key = :key ORDER BY session_id"
        into.add(name, tx.all(sql, root=project.root.uri, key=project.root.key))
    for name, order in (("bridge_messages", "seq"), ("bridge_updates", "seq"), ("bridge_tasks", "target")):
        into.add(name, _each(tx, name, "target", project.teams, f"target, {order}"))
    into.add("notices", _each(tx, "notices", "to_team", project.teams, "row_id"))
    into.add("conversations", _each(tx, "conversations", "to_team", project.teams, "id"))
    ids = list(into.values("conversations", "id"))
    into.add("asks", _each(tx, "asks", "conversation_id", ids, "row_id", where=f" AND status NOT IN {OPEN_ASKS}"))


def open_asks(tx: Tx, teams: Collection[str]) -> int:
    """Return the number of open asks to these teams; they stay here, where the asking team waits for the answer."""
    return sum(1 for _ in _each(tx, "asks", "to_team", teams, "status", where=f" AND status IN {OPEN_ASKS}"))


def _reasoning(tx: Tx, project: LocalProject, into: Staged) -> None:
    sessions = tx.all(
        f"SELECT {TABLES['sessions'].selected} FROM sessions WHERE (root_uri = :root OR project_key = :key)"
        " AND status <> 'deleted' AND coalesce(damage, '') <> :forgetting ORDER BY id",
        root=project.root.uri,
        key=project.root.key,
        forgetting=FORGETTING,
    )
    into.add("sessions", sessions)
    ids = {row["id"] for row in sessions}
    into.add("branches", _each(tx, "branches", "session_id", ids, "session_id, branch_id"))
    into.add("thoughts", (row for one in sorted(ids) for row in _thoughts(tx, one)))
    links = _each(tx, "session_links", "session_id", ids, "session_id, linked_id")
    into.add("session_links", (row for row in links if row["linked_id"] in ids))


def _thoughts(tx: Tx, session_id: str) -> Iterator[Row]:
    """Read a session's thoughts a few at a time: each may have a megabyte."""
    sql = (
        f"SELECT {TABLES['thoughts'].selected} FROM thoughts WHERE session_id = :id AND number > :after"
        " ORDER BY number LIMIT :some"
    )
    after = -1
    while batch := tx.all(sql, id=session_id, after=after, some=THOUGHTS_AT_ONCE):
        after = batch[-1]["number"]
        yield from batch


def _protocol(tx: Tx, project: LocalProject, into: Staged) -> None:
    runs = tx.all(
        f"SELECT {TABLES['protocol_runs'].selected} FROM protocol_runs WHERE root = :root OR project = :project"
        " ORDER BY row_id",
        root=project.worktree.root,
        project=project.worktree.project,
    )
    into.add("protocol_runs", runs)
    ids = [row["row_id"] for row in runs]
    for name, order in (("gates", "gate"), ("evidence", "row_id"), ("violations", "row_id")):
        into.add(f"protocol_{name}", _each(tx, f"protocol_{name}", "run", ids, f"run, {order}"))


def _each(tx: Tx, table: str, column: str, values: Collection[Any], order: str, where: str = "") -> Iterator[Row]:
    """Read the rows whose column has one of these values."""
    ordered = sorted(values)
    for start in range(0, len(ordered), AT_ONCE):
        batch = ordered[start : start + AT_ONCE]
        marks = ", ".join(f":v{number}" for number in range(len(batch)))
        yield from tx.all(
            f"SELECT {TABLES[table].selected} FROM {table} WHERE {column} IN ({marks}){where} ORDER BY {order}",
            **{f"v{number}": value for number, value in enumerate(batch)},
        )
