"""Runs as the three memories that agents and other tools read, or as one JSON file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from holdfast.protocol.model import CheckKind, ChecklistItem, Part, Status
from holdfast.protocol.runs import EvidenceKind, GateResult, RunRecord, RunStatus
from holdfast.text import one_line
from holdfast.text.quoting import in_quotes

CURRENT_STATE = "session-current-state"
HISTORY = "session-history"
VIOLATIONS_LOG = "session-violations-log"

NONE_RECORDED = "(none recorded)"
MAX_MEMORY_CHARS = 100_000
"""Limit of one memory; Serena refuses more than 150,000."""
LATEST = 10
"""Sessions in the history."""
MAX_LINE = 2_000
MAX_CELL = 300
MAX_DECISIONS = 20
MAX_VIOLATIONS = 50
TABLE_SPACE = 25_000
"""Characters of one table; its last row counts the rows that do not fit."""
SHORT_COMMIT = 7

STATUS_WORDS = {Status.PASS: "COMPLETE", Status.FAIL: "FAILED", Status.SKIPPED: "SKIPPED"}
PENDING = "PENDING"
_OPENS_BLOCK = re.compile(r"^(\d{0,9})([#>~<\[=]|```|[-+*_.)](?=[\s*_-]|$))")
_SESSION_ID = re.compile(r"""session[ _-]?id[\W_]{0,8}?:[ \t*"'`]*+([\w.-]++)""", re.IGNORECASE)


def current_state(record: RunRecord) -> str:
    """Render the active session: metadata, gate results, both checklists."""
    run = record.run
    lines = [
        "# Session State",
        "",
        "## Metadata",
        "",
        _entry("Session ID", run.id),
        _entry("Objective", run.objective),
        _entry("Branch", run.branch),
        _entry("Starting Commit", short(run.starting_commit)),
        _entry("Started At", timestamp(run.started_at)),
        _entry("Current Phase", run.phase),
        "",
        "## Phase Status",
        "",
        *_table(("Phase", "Status", "Evidence"), _phase_rows(record)),
        "",
        *_checklists(record),
    ]
    return _text(lines)


def checklist(record: RunRecord) -> str:
    """Render both checklists of a session."""
    return _text(["# Session Checklist", "", *_checklists(record)])


def history(records: Sequence[RunRecord]) -> str:
    """Render the last ten sessions that ended, newest first."""
    ended = [record for record in records if record.run.status != RunStatus.ACTIVE][:LATEST]
    head = ["# Session History", "", f"## Recent Sessions (Last {LATEST})", ""]
    return _sections(head, [_ended_section(record) for record in ended])


def violations_log(records: Sequence[RunRecord]) -> str:
    """Render the violations by session; the active session is listed even if it has none."""
    head = [
        "# Session Violations Log",
        "",
        "## Purpose",
        "",
        "Audit trail of protocol violations for retrospective analysis and skill extraction.",
        "",
        "## Violations",
        "",
    ]
    reported = [record for record in records if record.violations or record.run.status == RunStatus.ACTIVE]
    return _sections(head, [_violations_section(record) for record in reported])


def timestamp(ms: int) -> str:
    """Format a time as in the memories: ISO 8601 in UTC, to the second."""
    return f"{datetime.fromtimestamp(ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def short(commit: str | None) -> str | None:
    return commit[:SHORT_COMMIT] if commit else None


def decisions_of(record: RunRecord) -> list[str]:
    """Return the key decisions of a run that ended."""
    return [str(decision) for decision in json.loads(record.run.decisions or "[]") if str(decision).strip()]


def checklist_state(item: ChecklistItem, record: RunRecord) -> tuple[bool, str]:
    """Return whether a checklist item is done, and its evidence. Only a gate can mark it done."""
    result = record.result(item.gate)
    if result is None or result.status == Status.FAIL:
        return False, ""
    return result.status == Status.PASS and _was_read(item, record, result), _evidence_text(result)


def _was_read(item: ChecklistItem, record: RunRecord, result: GateResult) -> bool:
    """Return whether the file that an item names was read: a gate is met without one that does not exist."""
    gate = record.protocol.gate(item.gate or "")
    paths = [path for check in gate.checks if check.kind is CheckKind.FILE_READ for path in check.paths] if gate else []
    named = [path for path in paths if PurePosixPath(path).stem.lower() in item.step.lower()]
    read = {one.subject for one in record.evidence if one.kind in (EvidenceKind.FILE_READ, EvidenceKind.CONTENT_HASH)}
    return not named or any(path in read or PurePosixPath(path).name in result.evidence for path in named)


def _phase_rows(record: RunRecord) -> Iterable[tuple[str, ...]]:
    # Gates of the session end are listed only once they were checked; earlier they would hide how the start went.
    for gate in record.protocol.gates:
        result = record.result(gate.name)
        if result is not None:
            yield gate.name, STATUS_WORDS[Status(result.status)], result.evidence
        elif record.protocol.part_of(gate.name) is Part.START:
            yield gate.name, PENDING, ""


def _checklists(record: RunRecord) -> list[str]:
    lines: list[str] = []
    for part in Part:
        rows = (_checklist_row(item, record) for item in record.protocol.checklist if item.part is part)
        lines += [f"## Checklist ({part.value.title()})", "", *_table(("Req", "Step", "Status", "Evidence"), rows), ""]
    return lines


def _checklist_row(item: ChecklistItem, record: RunRecord) -> tuple[str, ...]:
    done, evidence = checklist_state(item, record)
    return item.level.value, item.step, "[x]" if done else "[ ]", evidence


def _evidence_text(result: GateResult) -> str:
    skipped = result.status == Status.SKIPPED and not result.evidence.startswith("SKIPPED")
    return f"SKIPPED: {result.evidence}" if skipped else result.evidence


def _ended_section(record: RunRecord) -> list[str]:
    run = record.run
    decisions = decisions_of(record)[:MAX_DECISIONS]
    return [
        f"### {one_line(run.id, MAX_LINE)}",
        "",
        _entry("Objective", run.objective),
        _entry("Outcome", run.status.upper()),
        _entry("Commit SHA", short(run.end_commit)),
        *(["- **Key Decisions**:"] if decisions else [_entry("Key Decisions", None)]),
        *(f"  - {_item(decision)}" for decision in decisions),
        _entry("Next Session Notes", run.notes),
        "",
    ]


def _violations_section(record: RunRecord) -> list[str]:
    rows = [
        (timestamp(one.at)[11:19], one.phase, one.requirement, one.severity, one.recovery or "")
        for one in record.violations[-MAX_VIOLATIONS:]
    ]
    header = ("Timestamp", "Phase", "Requirement", "Severity", "Recovery")
    return [
        f"### {one_line(record.run.id, MAX_LINE)}",
        "",
        *_table(header, rows or [(NONE_RECORDED, "", "", "", "")]),
        "",
    ]


def _entry(name: str, value: str | None) -> str:
    return f"- **{name}**: {one_line(value or '', MAX_LINE) or NONE_RECORDED}"


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [_row(header), "|" + "|".join("-" * (len(title) + 2) for title in header) + "|"]
    space, left_out = TABLE_SPACE, 0
    for row in rows:
        line = _row(tuple(_cell(text) for text in row))
        space -= len(line)
        if space > 0:
            lines.append(line)
        else:
            left_out += 1
    if left_out:
        lines.append(_row((f"({left_out} more)", *("" for _ in header[1:]))))
    return lines


def _row(cells: tuple[str, ...]) -> str:
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


def _cell(text: str) -> str:
    """Escape every pipe of a text: one ends a cell even between backticks."""
    return one_line(text, MAX_CELL).replace("\\", "\\\\").replace("|", "\\|")


def _item(text: str) -> str:
    """Format a text as a bullet: escape what would open a block, and quote what looks like Holdfast's own line."""
    from holdfast.text.own_lines import has_own_form  # imported late to keep the daemon's start fast

    line = one_line(text, MAX_CELL) or NONE_RECORDED
    return in_quotes(line, MAX_CELL) if has_own_form(line) else _OPENS_BLOCK.sub(r"\1\\\2", line, count=1)


def _sections(head: list[str], sections: Sequence[list[str]]) -> str:
    """Return the newest sections that fit."""
    lines, space = [*head], MAX_MEMORY_CHARS - sum(len(line) + 1 for line in head)
    for section in sections or [[NONE_RECORDED]]:
        space -= sum(len(line) + 1 for line in section)
        if space < 0:
            break
        lines += section
    return _text(lines)


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines).rstrip("\n") + "\n"


def session_named(text: str) -> str | None:
    """Return the session that a current state is about, whoever wrote it and in whichever form."""
    match = _SESSION_ID.search(text)
    return match[1] if match else None


# -- the state file, for a project without Serena ---------------------------------------------------------------------


def state_json(records: Sequence[RunRecord]) -> str:
    """Serialize the active run, if there is one, and the history of the others."""
    active = [record for record in records if record.run.status == RunStatus.ACTIVE][:1]
    ended = [record for record in records if record.run.status != RunStatus.ACTIVE][:LATEST]
    state = {
        **(_active_json(active[0]) if active else {}),
        "violations": [
            {
                "session_id": record.run.id,
                "timestamp": timestamp(one.at),
                "phase": one.phase,
                "requirement": one.requirement,
                "severity": one.severity,
                "recovery": one.recovery,
            }
            for record in (*active, *ended)
            for one in record.violations[-MAX_VIOLATIONS:]
        ],
        "history": [
            {
                "session_id": record.run.id,
                "objective": record.run.objective,
                "outcome": record.run.status.upper(),
                "commit_sha": short(record.run.end_commit),
                "key_decisions": decisions_of(record),
                "next_session_notes": record.run.notes,
            }
            for record in ended
        ],
    }
    return json.dumps(state, ensure_ascii=False, indent=2) + "\n"


def _active_json(record: RunRecord) -> dict[str, Any]:
    run = record.run
    return {
        "session_id": run.id,
        "objective": run.objective,
        "branch": run.branch,
        "starting_commit": short(run.starting_commit),
        "started_at": timestamp(run.started_at),
        "current_phase": run.phase,
        "phases_completed": [
            gate.name
            for gate in record.protocol.gates
            if (one := record.result(gate.name)) and one.status != Status.FAIL
        ],
        "checklist": [
            {"part": item.part.value, "req": item.level.value, "step": item.step, "done": done, "evidence": evidence}
            for item in record.protocol.checklist
            for done, evidence in [checklist_state(item, record)]
        ],
        "evidence": {result.gate: {"status": result.status, "evidence": result.evidence} for result in record.gates},
    }
