"""The SQL of transcript copies, functions of a transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.agents.transcript_copies import MAIN
from holdfast.store import Row, Tx

Entry = dict[str, Any]
"""One line of a transcript."""

ROWS_AT_ONCE = 500
LONGEST_SHOWN = 64 * 1024
"""Characters of a line that a page may show something of; an image or a whole file is longer."""
CHARACTERS_AT_ONCE = 4 * 1024 * 1024
"""Of entries that are read together; a longer entry is read alone."""


def lines(tx: Tx, key: Mapping[str, Any]) -> list[Entry]:
    """Return the lines of a key in order."""
    rows = tx.all(
        "SELECT entry FROM transcript_lines"
        " WHERE project_key = :project_key AND session_id = :session_id AND subpath = :subpath ORDER BY row_id",
        **_columns(key),
    )
    return [json.loads(row["entry"]) for row in rows]


def sessions(tx: Tx, project_key: str) -> list[Row]:
    """Return the sessions of a project with the time of their last line."""
    return tx.all(
        "SELECT session_id, max(at) AS mtime FROM transcript_lines"
        " WHERE project_key = :project_key AND subpath = :main GROUP BY session_id",
        project_key=project_key,
        main=MAIN,
    )


def is_known(tx: Tx, session_id: str) -> bool:
    """Return whether there is a line of this session, under any project."""
    return tx.one("SELECT 1 AS n FROM transcript_lines WHERE session_id = :id LIMIT 1", id=session_id) is not None


def everywhere(tx: Tx, session_id: str) -> dict[str, list[Entry]]:
    """Return the lines of a session by subpath, whichever projects they came from."""
    by_subpath: dict[str, list[Entry]] = {}
    sql = "SELECT subpath, entry FROM transcript_lines WHERE session_id = :id ORDER BY row_id"
    for row in tx.all(sql, id=session_id):
        by_subpath.setdefault(row["subpath"], []).append(json.loads(row["entry"]))
    return by_subpath


def put(tx: Tx, key: Mapping[str, Any], entries: Sequence[Entry], wanted: Sequence[str]) -> None:
    """Make these the lines of a session's subpath, under this project alone; `wanted` is how they are written."""
    columns = _columns(key)
    rows = tx.all(
        "SELECT project_key, entry FROM transcript_lines"
        " WHERE session_id = :session_id AND subpath = :subpath ORDER BY row_id",
        session_id=columns["session_id"],
        subpath=columns["subpath"],
    )
    here = [row["entry"] for row in rows if row["project_key"] == columns["project_key"]]
    if len(here) == len(rows) and here == wanted[: len(here)]:
        insert(tx, key, entries[len(here) :])
        return
    tx.run(
        "DELETE FROM transcript_lines WHERE session_id = :session_id AND subpath = :subpath",
        session_id=columns["session_id"],
        subpath=columns["subpath"],
    )
    insert(tx, key, entries)


def forget(tx: Tx, session_id: str) -> None:
    """Delete a session, under whatever project."""
    tx.run("DELETE FROM transcript_lines WHERE session_id = :id", id=session_id)


def subpaths(tx: Tx, session_id: str) -> list[str]:
    """Return the subpaths of a session, whichever projects they came from."""
    sql = "SELECT DISTINCT subpath FROM transcript_lines WHERE session_id = :id ORDER BY subpath"
    rows = tx.all(sql, id=session_id)
    return [row["subpath"] for row in rows]


def last(tx: Tx, session_id: str, before: int | None, most: int) -> list[tuple[int, Entry]]:
    """Return the last lines of a session, or those before a place, the latest first; a very long one is empty."""
    rows = tx.all(
        "SELECT row_id, CASE WHEN length(entry) <= :longest THEN entry END AS entry FROM transcript_lines"
        " WHERE session_id = :id AND subpath = :main AND row_id < :before ORDER BY row_id DESC LIMIT :most",
        id=session_id,
        main=MAIN,
        before=before or 1 << 62,
        longest=LONGEST_SHOWN,
        most=most,
    )
    return [(int(row["row_id"]), json.loads(row["entry"]) if row["entry"] is not None else {}) for row in rows]


def entries(tx: Tx, session_id: str, subpath: str) -> Iterator[Entry]:
    """Yield the lines of a session's subpath, a few at a time: all of them may be more than fits into memory."""
    last = -1
    while sizes := tx.all(
        "SELECT row_id, length(entry) AS size FROM transcript_lines"
        " WHERE session_id = :id AND subpath = :subpath AND row_id > :last ORDER BY row_id LIMIT :some",
        id=session_id,
        subpath=subpath,
        last=last,
        some=ROWS_AT_ONCE,
    ):
        first, total = last, 0
        for row in sizes:
            total += row["size"]
            if total > CHARACTERS_AT_ONCE and last > first:
                break
            last = row["row_id"]
        for row in tx.all(
            "SELECT entry FROM transcript_lines WHERE session_id = :id AND subpath = :subpath"
            " AND row_id > :first AND row_id <= :last ORDER BY row_id",
            id=session_id,
            subpath=subpath,
            first=first,
            last=last,
        ):
            yield json.loads(row["entry"])


def _columns(key: Mapping[str, Any]) -> dict[str, str]:
    return {
        "project_key": key["project_key"],
        "session_id": key["session_id"],
        "subpath": key.get("subpath") or MAIN,
    }


def written(entry: Mapping[str, Any]) -> str:
    """Return the entry as text in ASCII: PostgreSQL takes neither NUL nor half a surrogate pair."""
    return json.dumps(entry, separators=(",", ":"))


def insert(tx: Tx, key: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> None:
    """Add lines; a line with a uuid that is there already is not added again."""
    columns, now = _columns(key), tx.now()
    for entry in entries:
        name = entry.get("uuid")
        tx.run(
            "INSERT INTO transcript_lines (project_key, session_id, subpath, uuid, entry, at)"
            " VALUES (:project_key, :session_id, :subpath, :uuid, :entry, :at) ON CONFLICT DO NOTHING",
            uuid=name if isinstance(name, str) else None,
            entry=written(entry),
            at=now,
            **columns,
        )
