"""SQL of all projects: every root that any capability knows, and when something was last done there."""
# ruff: noqa: S608 - the SQL is built from constants only

from __future__ import annotations

from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx

INDEXED = (
    ("ledgers", "root", "project_key", "last_at"),
    ("agent_sessions", "root", "project_key", "seen_at"),
)
"""Large tables, with an index by root and time: it is walked from one root to the next."""
SESSIONS = ("sessions", "root_uri", "project_key", "updated_at")
"""The same, but its index has the status between root and time."""
SMALL = (
    ("projects", "root_uri", "project_key", "coalesce(paused_at, 0)"),
    ("project_tasks", "root", "project_key", "updated_at"),
    ("protocol_runs", "root", "project", "touched_at"),
)


@dataclass(frozen=True, slots=True)
class KnownRoot:
    """A root, the project that it belongs to, and when something was last done there."""

    root: str
    key: str | None
    last_at: int


def roots(tx: Tx) -> list[KnownRoot]:
    """Return every known root, once for each table that knows it."""
    found: list[KnownRoot] = []
    for table, root, key, at in (*INDEXED, SESSIONS):
        # By the index: one row is read of each root, however many it has.
        latest = f" ORDER BY {at} DESC" if (table, root, key, at) in INDEXED else ""
        sql = (
            f"WITH RECURSIVE walk(root) AS (SELECT min({root}) FROM {table} UNION ALL"
            f" SELECT (SELECT min({root}) FROM {table} WHERE {root} > walk.root) FROM walk WHERE walk.root IS NOT NULL)"
            f" SELECT walk.root, (SELECT {key} FROM {table} WHERE {root} = walk.root{latest} LIMIT 1) AS key,"
            f" (SELECT max({at}) FROM {table} WHERE {root} = walk.root) AS last_at"
            " FROM walk WHERE walk.root IS NOT NULL"
        )
        found += [KnownRoot(**row) for row in tx.all(sql)]
    for table, root, key, at in SMALL:
        sql = f"SELECT {root} AS root, max({key}) AS key, max({at}) AS last_at FROM {table} GROUP BY {root}"
        found += [KnownRoot(**row) for row in tx.all(sql)]
    return found


def paused(tx: Tx) -> set[str]:
    """Return the roots where recording is paused."""
    return {str(row["root_uri"]) for row in tx.all("SELECT root_uri FROM projects WHERE paused_at IS NOT NULL")}
