"""What an archive carries of the store: these tables and columns, and no others.

No keys, tokens, signing material, connections or audit; no leases and process ids, which mean nothing elsewhere; no
trust, which is given on each machine; no roots, because the project lies at another path there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from holdfast.handoff.errors import ArchiveRefused
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Row
from holdfast.times import YEAR_10000

MAX_INTEGER = 2**63 - 1
MAX_ROW = 8 * 1024 * 1024
"""Bytes of a row: enough for a thought of a megabyte with every character escaped."""
MAX_MARKS = 1_200_000
"""Commas and brackets of a row, which bound the number of values in it; a thought may consist of them."""


@dataclass(frozen=True, slots=True)
class ArchiveTable:
    """A table and its columns in an archive; `#` marks an integer, `?` a column that may be NULL."""

    name: str
    column_spec: str

    @property
    def columns(self) -> dict[str, str]:
        """The columns with their marks."""
        return {name.rstrip("#?"): name[len(name.rstrip("#?")) :] for name in self.column_spec.split()}

    @property
    def selected(self) -> str:
        """The columns as SQL."""
        return ", ".join(self.columns)

    @property
    def member(self) -> str:
        """Its name in the archive."""
        return f"store/{self.name}.jsonl"


TABLES = {
    table.name: table
    for table in (
        ArchiveTable(
            "sessions",
            "id title tags domain? status pinned# thought_count# branch_count# head_hash damage? created_at#"
            " updated_at# archived_at#?",
        ),
        ArchiveTable("branches", "session_id branch_id from_number# thought_count# created_at#"),
        ArchiveTable(
            "thoughts",
            "session_id number# content next_needed# total#? revises#? is_revision# branch_id? branch_from#?"
            " needs_more# requested_number#? connection_id? created_at# prev_hash hash",
        ),
        ArchiveTable("session_links", "session_id linked_id at#"),
        ArchiveTable(
            "protocol_runs",
            "row_id# id day number# protocol definition objective branch? starting_commit? phase held_from? held_by?"
            " status started_at# touched_at# ended_at#? end_commit? summary? decisions? notes?",
        ),
        ArchiveTable("protocol_gates", "run# gate status evidence fingerprint? checked_at#"),
        ArchiveTable("protocol_evidence", "run# gate? kind subject detail source at#"),
        ArchiveTable("protocol_violations", "run# at# phase requirement severity gate? recovery?"),
        ArchiveTable(
            "bridge_messages",
            "id target text fingerprint sender source priority# reply_to? status attempts# way? outcome? reply?"
            " created_at# expires_at# finished_at#?",
        ),
        ArchiveTable("bridge_updates", "target kind message_id? content data chat_only# created_at#"),
        ArchiveTable(
            "bridge_tasks",
            "target session_id? current_task current_task_id? last_completed_step? pending_messages updated_at#"
            " decision?",
        ),
        ArchiveTable(
            "conversations",
            "id# from_team to_team thread session_id begun# status message_count# compacted_count# note? fork_of?"
            " summary? created_at# last_used_at# last_started_at#",
        ),
        ArchiveTable(
            "asks",
            "id conversation_id# to_team text chain parent? status attempts# answer? error_code? error? note?"
            " duration_ms#? cost_microusd#? input_tokens#? output_tokens#? created_at# started_at#? finished_at#?",
        ),
        ArchiveTable("notices", "id from_team to_team text created_at# expires_at# shown_at#?"),
        ArchiveTable("ledgers", "session_id content last_at# updated_at#"),
        ArchiveTable("agent_sessions", "session_id source started_at# seen_at# ended_at#? end_reason? told?"),
    )
}


def written(rows: Iterable[Row]) -> Iterator[bytes]:
    """Encode rows as lines of a member of the archive."""
    for row in rows:
        yield json.dumps(row, separators=(",", ":")).encode() + b"\n"


def read(table: ArchiveTable, lines: Iterable[bytes]) -> Iterator[Row]:
    """Decode the rows of a member; each must have exactly the columns of its table, with valid values."""
    columns = table.columns
    for line in lines:
        if too_many_values(line):
            raise _refused(table, "holds a line of too many values")
        try:
            row = json.loads(line.decode("ascii"))
        except (ValueError, RecursionError):
            raise _refused(table, "holds a line that is no JSON") from None
        if not isinstance(row, dict) or row.keys() != columns.keys():
            raise _refused(table, "holds a row with other columns")
        for name, marks in columns.items():
            if not _fits(row[name], marks) or (name.endswith("at") and not 0 <= (row[name] or 0) < YEAR_10000):
                raise _refused(table, f"holds a value in {name} that no row can have")
        yield row


def too_many_values(line: bytes) -> bool:
    """Return whether parsing a line of JSON would take much more memory than the line."""
    return sum(line.count(mark) for mark in (b",", b"[", b"{")) > MAX_MARKS


def _fits(value: object, marks: str) -> bool:
    if value is None:
        return "?" in marks
    if "#" in marks:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_INTEGER
    return isinstance(value, str) and "\0" not in value and _is_unicode(value)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refused(table: ArchiveTable, why: str) -> ArchiveRefused:
    return ArchiveRefused(
        f"The archive's {table.member} {why}. Nothing was written.", recovery="Hand the project off again."
    )
