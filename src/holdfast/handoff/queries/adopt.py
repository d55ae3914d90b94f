"""SQL of adopting an archive: looks up existing rows and adds new ones. Functions of a transaction."""
# ruff: noqa: S608 - table and column names are this program's own

from __future__ import annotations

from collections.abc import Iterator

from holdfast.handoff import holding
from holdfast.handoff.model import KnownConversation, KnownRun, KnownSession, KnownTask
from holdfast.store import Row, Tx

AT_ONCE = 500


def session(tx: Tx, session_id: str) -> KnownSession | None:
    """Return a reasoning session, if it is here."""
    row = tx.one("SELECT thought_count, head_hash FROM sessions WHERE id = :id", id=session_id)
    return KnownSession(**row) if row else None


def has_thought(tx: Tx, session_id: str, thought_hash: str) -> bool:
    """Return whether a session here has the thought with this hash."""
    sql = "SELECT 1 AS known FROM thoughts WHERE session_id = :id AND hash = :hash"
    return tx.one(sql, id=session_id, hash=thought_hash) is not None


def same_run(tx: Tx, project: str, started_at: int, objective: str) -> KnownRun | None:
    """Return the run here that is the same one: of the project, with its start and objective."""
    row = tx.one(
        "SELECT row_id, touched_at FROM protocol_runs"
        " WHERE project = :project AND started_at = :started_at AND objective = :objective",
        project=project,
        started_at=started_at,
        objective=objective,
    )
    return KnownRun(**row) if row else None


def active_run(tx: Tx, root: str) -> int | None:
    """Return the row id of a root's active run."""
    row = tx.one("SELECT row_id FROM protocol_runs WHERE root = :root AND status = 'active'", root=root)
    return None if row is None else int(row["row_id"])


def empty_part_of_run(tx: Tx, table: str, run: int) -> None:
    """Delete a run's rows of a table."""
    tx.run(f"DELETE FROM {table} WHERE run = :run", run=run)


def free_number(tx: Tx, project: str, day: str, wanted: int) -> int:
    """Return the wanted number if it is free, or else the next one of that day."""
    rows = tx.all("SELECT number FROM protocol_runs WHERE project = :project AND day = :day", project=project, day=day)
    numbers = {row["number"] for row in rows}
    return wanted if wanted not in numbers else max(numbers) + 1


def task(tx: Tx, team: str) -> KnownTask | None:
    """Return the task of a team's agent here."""
    sql = "SELECT target, current_task, last_completed_step, updated_at FROM bridge_tasks WHERE target = :team"
    row = tx.one(sql, team=team)
    return KnownTask(holding.task_id(row), row["updated_at"]) if row else None


def notice_ids(tx: Tx, team: str) -> set[str]:
    """Return the ids that a team's notices here would have as messages of an archive."""
    rows = tx.all("SELECT id, to_team FROM notices WHERE to_team = :team", team=team)
    return {holding.notice_id(row) for row in rows}


def updates(tx: Tx, team: str) -> Iterator[int]:
    """Yield the digest of each of a team's updates here, in batches: all texts together may not fit into memory."""
    seq = 0
    while batch := tx.all(
        "SELECT seq, kind, message_id, content, data, created_at FROM bridge_updates"
        " WHERE target = :team AND seq > :seq ORDER BY seq LIMIT :some",
        team=team,
        seq=seq,
        some=AT_ONCE,
    ):
        seq = batch[-1]["seq"]
        yield from map(holding.update_hash, batch)


def last_seq(tx: Tx, table: str, team: str) -> int:
    """Return the last sequence number of a target."""
    row = tx.one(f"SELECT coalesce(max(seq), 0) AS seq FROM {table} WHERE target = :team", team=team)
    return int(row["seq"]) if row else 0


def conversation(tx: Tx, session_id: str, from_team: str, to_team: str, thread: str) -> KnownConversation | None:
    """Return the local conversation of a session, or else of the same pair and thread."""
    row = tx.one(
        "SELECT id, session_id FROM conversations WHERE session_id = :session_id"
        " OR (from_team = :from_team AND to_team = :to_team AND thread = :thread)"
        " ORDER BY session_id = :session_id DESC LIMIT 1",
        session_id=session_id,
        from_team=from_team,
        to_team=to_team,
        thread=thread,
    )
    return KnownConversation(**row) if row else None


def time_of(tx: Tx, table: str, key: str, value: str, time: str) -> int | None:
    """Return when the row with this key was last changed; None if there is none."""
    row = tx.one(f"SELECT {time} AS at FROM {table} WHERE {key} = :key", key=value)
    return None if row is None else int(row["at"])


def insert(tx: Tx, table: str, row: Row, *, unless: str | None = None) -> int:
    """Insert a row, unless one with the same values in these columns exists; return how many were inserted."""
    conflict = f" ON CONFLICT ({unless}) DO NOTHING" if unless else ""
    marks = ", ".join(f":{name}" for name in row)
    return tx.run(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks}){conflict}", **row)


def update(tx: Tx, table: str, row: Row, key: str) -> None:
    """Update the row with this key."""
    changes = ", ".join(f"{name} = :{name}" for name in row if name != key)
    tx.run(f"UPDATE {table} SET {changes} WHERE {key} = :{key}", **row)


def upsert(tx: Tx, table: str, row: Row, key: tuple[str, ...]) -> None:
    """Insert a row, or update the one with this key."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in row if name not in key)
    marks = ", ".join(f":{name}" for name in row)
    conflict = f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"
    tx.run(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks}) {conflict}", **row)
