"""Restores of a backup from another installation: credentials are left out, and messages to agents are held.

Works on the copy that is to become the store, before anything is replaced. A backup of this installation, or one that
a person says is theirs, is restored whole.
"""
# ruff: noqa: S608 - the SQL is built from constants only

from __future__ import annotations

from collections.abc import Iterator

from holdfast.handoff import holding
from holdfast.store import Row, Tx
from holdfast.text import bounded_json
from holdfast.times import YEAR_10000

ORIGIN = "a backup of another installation"
AT_ONCE = 200
OPEN_ASKS = "status IN ('waiting', 'running')"
LEFT_OUT = (
    ("api_keys", "keys of HTTP clients"),
    ("browser_sessions", "browsers that are signed in"),
    ("protocol_trust", "projects whose commands are trusted"),
    ("tokens", "reconnect tokens"),
)
"""Tables with credentials: counted, and left out."""
OF_PROCESSES = ("connections", "calls", "daemons", "leases", "permissions", "bridge_chats")
"""Tables about processes on the other machine."""
NOTED = "bridge_received"
WAITING = (
    ("bridge_messages", "status IN ('pending', 'leased')", "messages"),
    ("notices", "shown_at IS NULL", "notices"),
    ("bridge_tasks", "1 = 1", "tasks"),
)
"""Rows that would reach an agent: held."""


def brought(tx: Tx) -> list[str]:
    """Return what is left out of or held from another owner's backup, with numbers."""
    lines = [f"{number} {what}, left out" for table, what in LEFT_OUT if (number := _count(tx, table))]
    lines += [
        f"{number} waiting {what}, held" for table, which, what in WAITING if (number := _count(tx, table, which))
    ]
    if asks := _count(tx, "asks", OPEN_ASKS):
        lines.append(f"{asks} asks on their way, not run")
    return lines


def hold_back(tx: Tx) -> None:
    """Delete credentials, and hold what would reach an agent."""
    for table in (*(name for name, _ in LEFT_OUT), *OF_PROCESSES, NOTED):
        tx.run(f"DELETE FROM {table}")
    why = f"It came with {ORIGIN} and was not run."
    tx.run(
        "UPDATE asks SET status = 'failed', lease_by = NULL, lease_token = NULL, lease_until = NULL,"
        f" finished_at = :now, error_code = 'E_RESTORED', error = :why WHERE {OPEN_ASKS}",
        now=tx.now(),
        why=why,
    )
    tx.run("UPDATE conversations SET lease_by = NULL, lease_until = NULL, agent_pid = NULL")
    # No caller of that machine works here, and files that it named are not read.
    tx.run("UPDATE agent_sessions SET pid = NULL, pid_mark = NULL, alive_until = NULL, transcript = NULL")
    tx.run("UPDATE ledgers SET transcript = '', file_mark = '', read_to = 0")
    _drop_unreadable(tx, "bridge_updates", ("target", "kind", "content"), "created_at")
    tx.run("DELETE FROM bridge_updates WHERE chat_only <> 0")
    data = "json_object('archive', :origin, 'kind', kind)"
    tx.run(f"UPDATE bridge_updates SET data = {data}, kind = 'adopted'", origin=ORIGIN)
    for row in _pages(tx, "sessions"):
        tags = row["tags"] if _is_list(row["tags"]) else "[]"
        tx.run(
            "UPDATE sessions SET tags = :tags WHERE rowid = :place",
            tags=holding.tags_with_origin(tags, ORIGIN),
            place=row["place"],
        )
    _hold(tx)


def _is_list(text: object) -> bool:
    try:
        return isinstance(text, str) and isinstance(bounded_json.loads(text), list)
    except (ValueError, RecursionError):
        return False


def _hold(tx: Tx) -> None:
    """Hold messages under the name of the backup, and notices and tasks as messages."""
    _drop_unreadable(tx, "bridge_messages", ("id", "target", "text", "sender", "fingerprint", "status"), "created_at")
    _drop_unreadable(tx, "notices", ("id", "from_team", "to_team", "text"), "created_at")
    _drop_unreadable(tx, "bridge_tasks", ("target", "current_task"), "updated_at")
    for row in _pages(tx, "bridge_messages"):
        kept = holding.adopted_message(row, ORIGIN)
        tx.run(
            "UPDATE bridge_messages SET status = :status, way = :way, attempts = :attempts, lease_by = NULL,"
            " lease_until = NULL, source = :source, sender = :sender, priority = :priority WHERE row_id = :row_id",
            priority=row["priority"] if row["priority"] in (0, 1, 2) else 0,
            **{name: kept[name] for name in ("status", "way", "attempts", "source", "sender", "row_id")},
        )
    for row in [*_pages(tx, "notices", "shown_at IS NULL")]:
        _add(tx, holding.from_notice(row, ORIGIN))
    for row in [*_pages(tx, "bridge_tasks")]:
        _add(tx, holding.from_task(row, ORIGIN))
    tx.run("DELETE FROM notices WHERE shown_at IS NULL")
    tx.run("DELETE FROM bridge_tasks")
    waiting = tx.all("SELECT target, count(*) AS n FROM bridge_messages WHERE status = 'held' GROUP BY target")
    for row in waiting:
        holding.tell_chat(tx, row["target"], row["n"], ORIGIN)


def _drop_unreadable(tx: Tx, table: str, texts: tuple[str, ...], time: str) -> None:
    """Delete rows that Holdfast never wrote: SQLite accepts any value in any column."""
    wrong = " OR ".join(f"typeof({name}) <> 'text'" for name in texts)
    tx.run(
        f"DELETE FROM {table} WHERE {wrong} OR typeof({time}) <> 'integer' OR {time} < 0 OR {time} >= :end",
        end=YEAR_10000,
    )


def _pages(tx: Tx, table: str, which: str = "1 = 1") -> Iterator[Row]:
    last = -(2**63)
    while batch := tx.all(
        f"SELECT rowid AS place, * FROM {table} WHERE {which} AND rowid > :last ORDER BY rowid LIMIT :some",
        last=last,
        some=AT_ONCE,
    ):
        last = batch[-1]["place"]
        yield from batch


def _add(tx: Tx, row: Row) -> None:
    """Append a message to its target's queue, unless it is already there."""
    names = [*row, "seq"]
    tx.run(
        f"INSERT INTO bridge_messages ({', '.join(names)}) SELECT {', '.join(f':{name}' for name in row)},"
        " (SELECT coalesce(max(seq), 0) + 1 FROM bridge_messages WHERE target = :target)"
        " WHERE NOT EXISTS (SELECT 1 FROM bridge_messages WHERE id = :id AND target = :target)",
        **row,
    )


def _count(tx: Tx, table: str, which: str = "1 = 1") -> int:
    row = tx.one(f"SELECT count(*) AS n FROM {table} WHERE {which}")
    return int(row["n"]) if row else 0
