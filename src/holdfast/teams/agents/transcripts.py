"""Transcripts in the store: what the agent SDK calls a session store, on either engine.

Rows keep the project key they came with, as the SDK's contract asks. A conversation that goes on at another path is
found by its id alone and then moved to the new key.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.store import Store, Tx
from holdfast.teams.agents.shareable import shareable

Entry = dict[str, Any]
"""One line of a transcript."""

MAIN = ""
"""The subpath of the conversation itself; its subagents have others."""
ROWS_AT_ONCE = 500
CHARACTERS_AT_ONCE = 4 * 1024 * 1024
"""Of entries that are read together; a longer entry is read alone."""


class TranscriptStore:
    """Every mirrored transcript, by project key, session id and subpath."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def append(self, key: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> None:
        """Add lines; a line with a uuid that is there already is not added again."""
        lines = await self._shared(entries)
        await self._store.write(lambda tx: _insert(tx, key, lines))

    async def _shared(self, entries: Sequence[Mapping[str, Any]]) -> list[Entry]:
        """Take out secrets where other machines read the store; SQLite is on the same disk as the agent's own file."""
        if self._store.engine != "postgres":
            return [dict(entry) for entry in entries]
        return await asyncio.to_thread(shareable, entries)

    async def load(self, key: Mapping[str, Any]) -> list[Entry] | None:
        """The lines in order, or None when there are none."""
        rows = await self._store.read(
            lambda tx: tx.all(
                "SELECT entry FROM transcript_lines"
                " WHERE project_key = :project_key AND session_id = :session_id AND subpath = :subpath"
                " ORDER BY row_id",
                **_columns(key),
            )
        )
        return [json.loads(row["entry"]) for row in rows] or None

    async def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        """The sessions of a project with the time of their last line."""
        return await self._store.read(
            lambda tx: tx.all(
                "SELECT session_id, max(at) AS mtime FROM transcript_lines"
                " WHERE project_key = :project_key AND subpath = :main GROUP BY session_id",
                project_key=project_key,
                main=MAIN,
            )
        )

    async def list_subkeys(self, key: Mapping[str, Any]) -> list[str]:
        """The subpaths of a session: its subagents."""
        rows = await self._store.read(
            lambda tx: tx.all(
                "SELECT DISTINCT subpath FROM transcript_lines"
                " WHERE project_key = :project_key AND session_id = :session_id AND subpath <> :main ORDER BY subpath",
                project_key=key["project_key"],
                session_id=key["session_id"],
                main=MAIN,
            )
        )
        return [row["subpath"] for row in rows]

    async def delete(self, key: Mapping[str, Any]) -> None:
        """Delete a session with its subagents, or the one subpath that is named."""
        which = "" if key.get("subpath") is None else " AND subpath = :subpath"
        columns = _columns(key)
        if not which:
            del columns["subpath"]
        await self._store.write(
            lambda tx: tx.run(
                "DELETE FROM transcript_lines"  # noqa: S608 - one of two texts
                f" WHERE project_key = :project_key AND session_id = :session_id{which}",
                **columns,
            )
        )

    async def known(self, session_id: str) -> bool:
        """Whether there is a line of this session, under whatever project."""
        row = await self._store.read(
            lambda tx: tx.one("SELECT 1 AS n FROM transcript_lines WHERE session_id = :id LIMIT 1", id=session_id)
        )
        return row is not None

    async def everywhere(self, session_id: str) -> dict[str, list[Entry]]:
        """The lines of a session by subpath, whichever projects they came from."""

        def read(tx: Tx) -> dict[str, list[Entry]]:
            found: dict[str, list[Entry]] = {}
            for row in tx.all(
                "SELECT subpath, entry FROM transcript_lines WHERE session_id = :id ORDER BY row_id", id=session_id
            ):
                found.setdefault(row["subpath"], []).append(json.loads(row["entry"]))
            return found

        return await self._store.read(read)

    async def put(self, key: Mapping[str, Any], entries: Sequence[Entry]) -> None:
        """Make these the lines of a session's subpath, under this project alone."""
        columns = _columns(key)
        entries = await self._shared(entries)
        wanted = await asyncio.to_thread(lambda: [_written(entry) for entry in entries])

        def change(tx: Tx) -> None:
            rows = tx.all(
                "SELECT project_key, entry FROM transcript_lines"
                " WHERE session_id = :session_id AND subpath = :subpath ORDER BY row_id",
                session_id=columns["session_id"],
                subpath=columns["subpath"],
            )
            here = [row["entry"] for row in rows if row["project_key"] == columns["project_key"]]
            if len(here) == len(rows) and here == wanted[: len(here)]:
                _insert(tx, key, entries[len(here) :])
                return
            tx.run(
                "DELETE FROM transcript_lines WHERE session_id = :session_id AND subpath = :subpath",
                session_id=columns["session_id"],
                subpath=columns["subpath"],
            )
            _insert(tx, key, entries)

        await self._store.write(change)

    async def forget(self, session_id: str) -> None:
        """Delete a session, under whatever project."""
        await self._store.write(lambda tx: tx.run("DELETE FROM transcript_lines WHERE session_id = :id", id=session_id))


def subpaths(tx: Tx, session_id: str) -> list[str]:
    """The subpaths of a session, whichever projects they came from."""
    sql = "SELECT DISTINCT subpath FROM transcript_lines WHERE session_id = :id ORDER BY subpath"
    rows = tx.all(sql, id=session_id)
    return [row["subpath"] for row in rows]


def entries(tx: Tx, session_id: str, subpath: str) -> Iterator[Entry]:
    """The lines of a session's subpath, a few at a time: all of them may be more than fits into memory."""
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


def _written(entry: Mapping[str, Any]) -> str:
    """The entry as text in ASCII: PostgreSQL takes neither NUL nor half a surrogate pair."""
    return json.dumps(entry, separators=(",", ":"))


def _insert(tx: Tx, key: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> None:
    columns, now = _columns(key), tx.now()
    for entry in entries:
        name = entry.get("uuid")
        tx.run(
            "INSERT INTO transcript_lines (project_key, session_id, subpath, uuid, entry, at)"
            " VALUES (:project_key, :session_id, :subpath, :uuid, :entry, :at) ON CONFLICT DO NOTHING",
            uuid=name if isinstance(name, str) else None,
            entry=_written(entry),
            at=now,
            **columns,
        )
