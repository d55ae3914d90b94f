"""What the store holds of a project: read on one snapshot, as the rows of an archive."""
# ruff: noqa: S608 - the texts are put together from constants alone

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

from holdfast.archive.place import ProjectPlace
from holdfast.archive.tables import TABLES
from holdfast.reasoning.model import FORGETTING
from holdfast.store import Row, Tx

AT_ONCE = 200
"""How many ids one query names."""
OPEN_ASKS = ("waiting", "running")


def gathered(tx: Tx, place: ProjectPlace) -> dict[str, list[Row]]:
    """Every row that travels, by table, in an order that comes out the same each time."""
    own = _reasoning(tx, place) | _protocol(tx, place) | _agents(tx, place)
    return own | _bridge(tx, place.teams) | _conversations(tx, place.teams)


def open_asks(tx: Tx, teams: Collection[str]) -> int:
    """How many asks to these teams are on their way; they stay here, because somebody here waits for the answer."""
    found = _each(tx, "asks", "to_team", teams, "status", where=f" AND status IN {OPEN_ASKS}")
    return len(found)


def _reasoning(tx: Tx, place: ProjectPlace) -> dict[str, list[Row]]:
    sessions = tx.all(
        f"SELECT {TABLES['sessions'].selected} FROM sessions WHERE (root_uri = :root OR project_key = :key)"
        " AND status <> 'deleted' AND coalesce(damage, '') <> :forgetting ORDER BY id",
        root=place.root.uri,
        key=place.root.key,
        forgetting=FORGETTING,
    )
    ids = [row["id"] for row in sessions]
    links = _each(tx, "session_links", "session_id", ids, "session_id, linked_id")
    return {
        "sessions": sessions,
        "branches": _each(tx, "branches", "session_id", ids, "session_id, branch_id"),
        "thoughts": _each(tx, "thoughts", "session_id", ids, "session_id, number"),
        "session_links": [row for row in links if row["linked_id"] in set(ids)],
    }


def _protocol(tx: Tx, place: ProjectPlace) -> dict[str, list[Row]]:
    runs = tx.all(
        f"SELECT {TABLES['protocol_runs'].selected} FROM protocol_runs WHERE root = :root OR project = :project"
        " ORDER BY row_id",
        root=place.worktree.root,
        project=place.worktree.project,
    )
    ids = [row["row_id"] for row in runs]
    return {
        "protocol_runs": runs,
        "protocol_gates": _each(tx, "protocol_gates", "run", ids, "run, gate"),
        "protocol_evidence": _each(tx, "protocol_evidence", "run", ids, "run, row_id"),
        "protocol_violations": _each(tx, "protocol_violations", "run", ids, "run, row_id"),
    }


def _agents(tx: Tx, place: ProjectPlace) -> dict[str, list[Row]]:
    return {
        name: tx.all(
            f"SELECT {TABLES[name].selected} FROM {name} WHERE root = :root OR project_key = :key ORDER BY session_id",
            root=place.root.uri,
            key=place.root.key,
        )
        for name in ("ledgers", "agent_sessions")
    }


def _bridge(tx: Tx, teams: Collection[str]) -> dict[str, list[Row]]:
    return {
        "bridge_messages": _each(tx, "bridge_messages", "target", teams, "target, seq"),
        "bridge_updates": _each(tx, "bridge_updates", "target", teams, "target, seq"),
        "bridge_tasks": _each(tx, "bridge_tasks", "target", teams, "target"),
        "notices": _each(tx, "notices", "to_team", teams, "row_id"),
    }


def _conversations(tx: Tx, teams: Collection[str]) -> dict[str, list[Row]]:
    conversations = _each(tx, "conversations", "to_team", teams, "id")
    ids = [row["id"] for row in conversations]
    asks = _each(tx, "asks", "conversation_id", ids, "row_id", where=f" AND status NOT IN {OPEN_ASKS}")
    return {"conversations": conversations, "asks": asks}


def _each(tx: Tx, table: str, column: str, values: Collection[Any], order: str, where: str = "") -> list[Row]:
    """The rows whose column has one of these values."""
    found: list[Row] = []
    for some in _batches(sorted(values)):
        marks = ", ".join(f":v{place}" for place in range(len(some)))
        found += tx.all(
            f"SELECT {TABLES[table].selected} FROM {table} WHERE {column} IN ({marks}){where} ORDER BY {order}",
            **{f"v{place}": value for place, value in enumerate(some)},
        )
    return found


def _batches(values: list[Any]) -> Iterator[list[Any]]:
    rest = iter(values)
    while some := list(islice(rest, AT_ONCE)):
        yield some
