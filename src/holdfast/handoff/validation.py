"""Checks that the rows of an archive fit together: references resolve, and hash chains of thoughts are intact."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

from holdfast.bridge.model import Priority, UpdateKind
from holdfast.bridge.model import Status as MessageStatus
from holdfast.handoff.errors import ArchiveRefused
from holdfast.handoff.staging import Staged
from holdfast.handoff.tables import too_many_values
from holdfast.protocol import definition
from holdfast.protocol.model import Protocol
from holdfast.protocol.runs import RunStatus
from holdfast.reasoning import hash_chain as chain
from holdfast.reasoning.model import Status
from holdfast.reasoning.queries import sessions as queries
from holdfast.store import Row
from holdfast.teams.model import AskStatus, ConversationStatus
from holdfast.teams.team import name_problem
from holdfast.text import bounded_json

REFERENCES = (
    ("branches", "session_id", "sessions", "id"),
    ("thoughts", "session_id", "sessions", "id"),
    ("session_links", "session_id", "sessions", "id"),
    ("session_links", "linked_id", "sessions", "id"),
    ("protocol_gates", "run", "protocol_runs", "row_id"),
    ("protocol_evidence", "run", "protocol_runs", "row_id"),
    ("protocol_violations", "run", "protocol_runs", "row_id"),
    ("asks", "conversation_id", "conversations", "id"),
)
KEYS = (
    ("sessions", ("id",)),
    ("branches", ("session_id", "branch_id")),
    ("thoughts", ("session_id", "number")),
    ("session_links", ("session_id", "linked_id")),
    ("protocol_runs", ("row_id",)),
    ("protocol_gates", ("run", "gate")),
    ("bridge_messages", ("id", "target")),
    ("bridge_tasks", ("target",)),
    ("conversations", ("id",)),
    ("conversations", ("session_id",)),
    ("conversations", ("from_team", "to_team", "thread")),
    ("asks", ("id",)),
    ("notices", ("id",)),
    ("ledgers", ("session_id",)),
    ("agent_sessions", ("session_id",)),
)
"""Unique columns by table."""
CHOICES: dict[tuple[str, str], frozenset[object]] = {
    ("sessions", "status"): frozenset({Status.ACTIVE.value, Status.ARCHIVED.value}),
    ("protocol_runs", "status"): frozenset(RunStatus),
    ("bridge_messages", "status"): frozenset(MessageStatus),
    ("bridge_messages", "priority"): frozenset(Priority),
    ("bridge_updates", "kind"): frozenset(UpdateKind),
    ("conversations", "status"): frozenset(ConversationStatus),
    ("asks", "status"): frozenset(one for one in AskStatus if one.done),
}
NAMES = (
    ("sessions", "id"),
    ("protocol_runs", "id"),
    ("bridge_messages", "id"),
    ("conversations", "session_id"),
    ("conversations", "from_team"),
    ("conversations", "thread"),
)
"""Columns that people are shown: short, and without terminal control characters."""
TEAMS = (
    ("bridge_messages", "target"),
    ("bridge_updates", "target"),
    ("bridge_tasks", "target"),
    ("notices", "to_team"),
    ("conversations", "to_team"),
)
CHANGED = "changed thoughts "
LONGEST_NAME = 128
MAX_NUMBER = 999_999
MAX_TEAMS = 100
JSON_COLUMNS = {
    ("sessions", "tags"): list,
    ("protocol_runs", "decisions"): list,
    ("bridge_updates", "data"): dict,
    ("bridge_tasks", "pending_messages"): list,
    ("asks", "chain"): list,
    ("ledgers", "content"): dict,
    ("agent_sessions", "told"): list,
}


def check(rows: Staged) -> None:
    """Raise ArchiveRefused for rows that no store could contain."""
    for table, columns in KEYS:
        if rows.has_duplicates(table, columns):
            raise _refused(f"holds a row of {table} twice")
    for table, column, parent, key in REFERENCES:
        if rows.has_dangling(table, column, parent, key):
            raise _refused(f"holds {table} whose {parent} are missing")
    for (table, column), allowed in CHOICES.items():
        if any(value not in allowed for value in rows.values(table, column)):
            raise _refused(f"holds a {column} in {table} that there is not")
    for (table, column), kind in JSON_COLUMNS.items():
        if not all(value is None or _is_json(value, kind) for value in rows.values(table, column)):
            raise _refused(f"holds a {column} in {table} that cannot be read")
    for table, column in NAMES:
        if not all(value.isprintable() and len(value) <= LONGEST_NAME for value in rows.values(table, column)):
            raise _refused(f"holds a {column} in {table} that is not a valid name")
    for table, column in TEAMS:
        if any(name_problem(value) for value in islice(rows.values(table, column), MAX_TEAMS + 1)):
            raise _refused(f"holds a {column} in {table} that is not a valid team name")
    if len(teams_of(rows)) > MAX_TEAMS:
        raise _refused(f"names more than {MAX_TEAMS} teams")
    for run in rows.rows("protocol_runs"):
        protocol_of(run)
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", run["day"], re.ASCII) or not 0 < run["number"] <= MAX_NUMBER:
            raise _refused(f"holds a run {run['id']} of no day")
    for session in rows.rows("sessions"):
        _check_chain(session, rows.rows("thoughts", session_id=session["id"]))


def teams_of(rows: Staged) -> set[str]:
    """Return the teams that the rows name, at most one more per table than is allowed."""
    return {team for table, column in TEAMS for team in islice(rows.values(table, column), MAX_TEAMS + 1)}


def protocol_of(run: Row) -> Protocol:
    """Return the protocol that a run began with."""
    if too_many_values(run["definition"].encode()):
        raise _refused(f"holds a run {run['id']} whose protocol is too long")
    try:
        return definition.loads(run["definition"])
    except (ValueError, KeyError, TypeError):
        raise _refused(f"holds a run {run['id']} whose protocol cannot be read") from None


def commands_of(protocol: Protocol) -> set[tuple[str, ...]]:
    """Return the commands that a protocol's gates run."""
    checks = (check for step in protocol.transitions for check in step.gate.checks)
    return {check.argv for check in checks if check.argv}


def _is_json(text: str, kind: type) -> bool:
    try:
        return not too_many_values(text.encode()) and isinstance(bounded_json.loads(text), kind)
    except ValueError:
        return False


def changed_thoughts(thoughts: Iterable[Row]) -> list[int]:
    """Return the numbers of thoughts that do not match their hash."""
    return [row["number"] for row in thoughts if not _is_sealed(row)]


def with_changed(damage: str | None, numbers: list[int]) -> str:
    """Return a session's damage with the numbers of the thoughts that were changed before the export."""
    notice = f"{CHANGED}{', '.join(map(str, numbers))}"
    return f"{damage}; {notice}" if damage else notice


def _reported_as_changed(damage: str | None) -> set[int]:
    match = re.search(rf"{CHANGED}([0-9, ]+)", damage or "")
    return {int(number) for number in re.findall(r"[0-9]{1,18}", match[1])} if match else set()


def _is_sealed(row: Row) -> bool:
    fields = {name: value for name, value in row.items() if name not in ("prev_hash", "hash")}
    return bool(chain.seal(row["prev_hash"], queries.to_thought(fields)) == row["hash"])


def _check_chain(session: Row, thoughts: Iterable[Row]) -> None:
    """Check a session's hash chain. A damaged session may have gaps, and the changed thoughts that it names."""
    previous, number = chain.genesis(session["id"]), 0
    reported = _reported_as_changed(session["damage"])
    for number, row in enumerate(thoughts, 1):
        linked = row["prev_hash"] == previous and row["number"] == number
        if not (_is_sealed(row) or row["number"] in reported) or not (linked or session["damage"]):
            raise _refused(f"holds a thought {row['number']} of session {session['id']} that was changed")
        previous = row["hash"]
    if not session["damage"] and (number != session["thought_count"] or previous != session["head_hash"]):
        raise _refused(f"does not hold all thoughts of session {session['id']}")


def _refused(why: str) -> ArchiveRefused:
    return ArchiveRefused(f"The archive {why}. Nothing was written.", recovery="Hand the project off again.")
