"""The mirror's SQL: how far the memories of each worktree are, each query a function of a transaction."""

# ruff: noqa: S608 - the statements are built from constants only

from __future__ import annotations

import json
from collections.abc import Iterable

from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx, events

READ_AT_ONCE = 500
ENTRY = "root, wanted, done, place, failure"


@dataclass(frozen=True, slots=True)
class Entry:
    """How far the memories of a worktree are behind its runs."""

    root: str
    wanted: int
    """The newest event that changed them."""
    done: int
    """The event they are up to date with."""
    place: str | None
    failure: str | None

    @property
    def behind(self) -> bool:
        """Whether a change is not written yet."""
        return self.wanted > self.done


def last_noted(tx: Tx) -> int:
    """Return the newest event that was noted; a restart continues from there."""
    row = tx.one("SELECT max(wanted) AS seq FROM protocol_mirror")
    return int(row["seq"]) if row and row["seq"] is not None else 0


def changed_since(tx: Tx, seq: int) -> tuple[int, list[tuple[str, int]]]:
    """Return the last event read, and the worktrees whose runs changed after an event, each with its newest event."""
    rows = tx.all(
        "SELECT seq, data FROM events WHERE seq > :seq AND kind LIKE 'protocol.%' ORDER BY seq LIMIT :limit",
        seq=seq,
        limit=READ_AT_ONCE,
    )
    named = ((json.loads(row["data"]).get("root"), int(row["seq"])) for row in rows)
    newest = {root: at for root, at in named if isinstance(root, str)}
    return (rows[-1]["seq"] if len(rows) == READ_AT_ONCE else max(seq, events.head(tx))), list(newest.items())


def note(tx: Tx, changed: Iterable[tuple[str, int]]) -> None:
    """Note that the memories of these worktrees must be written."""
    for root, seq in changed:
        tx.run(
            "INSERT INTO protocol_mirror (root, wanted, done, at) VALUES (:root, :seq, 0, :now)"
            " ON CONFLICT (root) DO UPDATE SET wanted = excluded.wanted WHERE excluded.wanted > protocol_mirror.wanted",
            root=root,
            seq=seq,
            now=tx.now(),
        )


def entries(tx: Tx) -> list[Entry]:
    """Return every worktree that has or had something to mirror."""
    return [Entry(**row) for row in tx.all(f"SELECT {ENTRY} FROM protocol_mirror ORDER BY root")]


def unfinished(tx: Tx) -> list[Entry]:
    """Return the worktrees whose memories are behind or in a fallback location."""
    behind = "wanted > done OR failure IS NOT NULL"
    return [Entry(**row) for row in tx.all(f"SELECT {ENTRY} FROM protocol_mirror WHERE {behind} ORDER BY at, root")]


def mirrored(tx: Tx, root: str, seq: int, place: str, failure: str | None) -> None:
    """Store that the memories include this event; a failure says why they are not where they should be."""
    tx.run(
        "UPDATE protocol_mirror SET done = CASE WHEN done > :seq THEN done ELSE :seq END, place = :place,"
        " failure = :failure, at = :now WHERE root = :root",
        root=root,
        seq=seq,
        place=place,
        failure=failure,
        now=tx.now(),
    )


def failed(tx: Tx, root: str, failure: str) -> None:
    """Store that the memories could not be written."""
    tx.run(
        "UPDATE protocol_mirror SET failure = :failure, at = :now WHERE root = :root",
        root=root,
        failure=failure,
        now=tx.now(),
    )


def knows(tx: Tx, root: str, session_id: str) -> bool:
    """Return whether a session is one of the project's runs, in any worktree."""
    row = tx.one(
        "SELECT 1 AS known FROM protocol_runs WHERE id = :id"
        " AND project IN (SELECT project FROM protocol_runs WHERE root = :root) LIMIT 1",
        id=session_id,
        root=root,
    )
    return row is not None
