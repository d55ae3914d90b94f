"""SQL for roots: every column that holds one, in the tables of all capabilities. Functions of a transaction."""
# ruff: noqa: S608 - the texts are put together from constants alone

from __future__ import annotations

from holdfast.store import Row, Tx

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
    ("protocol_mirror", "root"),
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


def latest_sessions(tx: Tx, limit: int) -> list[Row]:
    """Return the ids and titles of reasoning sessions, the latest first."""
    return tx.all("SELECT id, title FROM sessions ORDER BY updated_at DESC LIMIT :limit", limit=limit)
