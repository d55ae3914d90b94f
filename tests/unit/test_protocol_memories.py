"""The memories: the documented markdown to the letter, whatever the texts in it, and read back from any hand."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from holdfast.protocol import memories
from holdfast.protocol.memories import session_named, state_json
from holdfast.protocol.protocols import AGENTS
from holdfast.protocol.runs import Evidence, EvidenceKind, GateResult, Run, RunRecord, RunStatus, Source, Violation

MARKDOWN = MarkdownIt("commonmark").enable("table")


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


RUN = Run(
    row_id=1,
    id="2025-12-21-session-01",
    root="file:///work",
    project="example.org/work",
    protocol="agents",
    definition="{}",
    objective="Design Session State MCP",
    branch="feat/mcp-updates",
    starting_commit="e846d7e0123456789abcdef0123456789abcdef0",
    phase="WORKING",
    held_from=None,
    held_by=None,
    status=RunStatus.ACTIVE,
    started_at=at("2025-12-21T14:30:00"),
    touched_at=at("2025-12-21T14:30:00"),
)

READ = tuple(
    Evidence(None, EvidenceKind.FILE_READ, path, "", Source.HOOK, 0)
    for path in (".serena/memories/skill-usage-mandatory.md", ".agents/governance/PROJECT-CONSTRAINTS.md")
)


def view(
    gates: Mapping[str, tuple[str, str]] | None = None, violations: tuple[Violation, ...] = (), **fields: Any
) -> RunRecord:
    results = tuple(GateResult(name, *result, checked_at=0) for name, result in (gates or {}).items())
    return RunRecord(dataclasses.replace(RUN, **fields), AGENTS, results, READ, violations)


def ended(number: int, **fields: Any) -> RunRecord:
    known = {"id": f"2025-12-20-session-{number:02}", "status": RunStatus.COMPLETE, "phase": "COMPLETE"}
    return view(**{**known, **fields})


def tables(text: str) -> list[list[list[str]]]:
    """The tables of a markdown text, as a reader of it sees them."""
    found: list[list[list[str]]] = []
    tokens = MARKDOWN.parse(text)
    for place, token in enumerate(tokens):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type in ("td_open", "th_open"):
            children = tokens[place + 1].children or []
            found[-1][-1].append("".join(child.content for child in children))
    return found


def headings(text: str) -> list[str]:
    tokens = MARKDOWN.parse(text)
    return [tokens[place + 1].content for place, token in enumerate(tokens) if token.type == "heading_open"]


def test_the_current_state_has_the_documented_form_to_the_letter() -> None:
    passed = {
        "SERENA_INIT": ("PASS", "Tool output in transcript"),
        "SKILL_VALIDATION": ("PASS", "Listed 12 scripts"),
        "CONTEXT_RETRIEVAL": ("PASS", "HANDOFF.md hash: abc123"),
        "SESSION_LOG": ("PASS", ".agents/sessions/2025-12-21-session-01.md"),
        "GIT_STATE": ("PASS", "Clean, main branch"),
    }
    assert (
        memories.current_state(view(passed))
        == """\
# Session State

## Metadata

- **Session ID**: 2025-12-21-session-01
- **Objective**: Design Session State MCP
- **Branch**: feat/mcp-updates
- **Starting Commit**: e846d7e
- **Started At**: 2025-12-21T14:30:00Z
- **Current Phase**: WORKING

## Phase Status

| Phase | Status | Evidence |
|-------|--------|----------|
| SERENA_INIT | COMPLETE | Tool output in transcript |
| SKILL_VALIDATION | COMPLETE | Listed 12 scripts |
| CONTEXT_RETRIEVAL | COMPLETE | HANDOFF.md hash: abc123 |
| SESSION_LOG | COMPLETE | .agents/sessions/2025-12-21-session-01.md |
| GIT_STATE | COMPLETE | Clean, main branch |

## Checklist (Start)

| Req | Step | Status | Evidence |
|-----|------|--------|----------|
| MUST | Initialize Serena: mcp__serena__activate_project | [x] | Tool output in transcript |
| MUST | Initialize Serena: mcp__serena__initial_instructions | [x] | Tool output in transcript |
| MUST | Read .agents/HANDOFF.md | [x] | HANDOFF.md hash: abc123 |
| MUST | Create session log | [x] | .agents/sessions/2025-12-21-session-01.md |
| MUST | List skill scripts | [x] | Listed 12 scripts |
| MUST | Read skill-usage-mandatory | [x] | Listed 12 scripts |
| MUST | Read PROJECT-CONSTRAINTS.md | [x] | HANDOFF.md hash: abc123 |
| SHOULD | Search relevant memories | [ ] | |
| SHOULD | Verify git status | [x] | Clean, main branch |
| SHOULD | Note starting commit | [x] | Clean, main branch |

## Checklist (End)

| Req | Step | Status | Evidence |
|-----|------|--------|----------|
| MUST | Update .agents/HANDOFF.md | [ ] | |
| MUST | Complete session log | [ ] | |
| MUST | Run markdown lint | [ ] | |
| MUST | Route to qa agent | [ ] | |
| MUST | Commit all changes | [ ] | |
| SHOULD | Update PROJECT-PLAN.md | [ ] | |
| SHOULD | Invoke retrospective | [ ] | |
| SHOULD | Verify clean git status | [ ] | |
"""
    )


def test_the_history_has_the_documented_form_to_the_letter() -> None:
    decisions = ["CWE-20/CWE-78 remediated", "Added input validation to workflow"]
    third = ended(
        3,
        objective="Security remediation for ai-issue-triage",
        end_commit="51101b5aaaa",
        decisions=json.dumps(decisions),
        notes="Run full regression test",
    )
    bare = ended(2, objective="PR batch review", status=RunStatus.ORPHANED)
    assert (
        memories.history([view(), third, bare])
        == """\
# Session History

## Recent Sessions (Last 10)

### 2025-12-20-session-03

- **Objective**: Security remediation for ai-issue-triage
- **Outcome**: COMPLETE
- **Commit SHA**: 51101b5
- **Key Decisions**:
  - CWE-20/CWE-78 remediated
  - Added input validation to workflow
- **Next Session Notes**: Run full regression test

### 2025-12-20-session-02

- **Objective**: PR batch review
- **Outcome**: ORPHANED
- **Commit SHA**: (none recorded)
- **Key Decisions**: (none recorded)
- **Next Session Notes**: (none recorded)
"""
    )


def test_the_violations_log_has_the_documented_form_to_the_letter() -> None:
    violated = ended(
        15,
        id="2025-12-18-session-15",
        violations=(
            Violation(
                at("2025-12-18T14:23:00"),
                "SKILL_VALIDATION",
                "MUST read skill-usage-mandatory",
                "CRITICAL",
                "Read at 14:25:00",
            ),
            Violation(at("2025-12-18T14:30:00"), "SKILL_VALIDATION", "MUST check existing skills", "CRITICAL", None),
        ),
    )
    assert (
        memories.violations_log([view(), ended(3), violated])
        == """\
# Session Violations Log

## Purpose

Audit trail of protocol violations for retrospective analysis and skill extraction.

## Violations

### 2025-12-21-session-01

| Timestamp | Phase | Requirement | Severity | Recovery |
|-----------|-------|-------------|----------|----------|
| (none recorded) | | | | |

### 2025-12-18-session-15

| Timestamp | Phase | Requirement | Severity | Recovery |
|-----------|-------|-------------|----------|----------|
| 14:23:00 | SKILL_VALIDATION | MUST read skill-usage-mandatory | CRITICAL | Read at 14:25:00 |
| 14:30:00 | SKILL_VALIDATION | MUST check existing skills | CRITICAL | |
"""
    )


def test_each_status_of_a_gate_has_its_word_and_only_a_gate_that_passed_ticks_its_boxes() -> None:
    state = view({"SERENA_INIT": ("SKIPPED", "no Serena"), "SKILL_VALIDATION": ("FAIL", "not read")}, phase="BLOCKED")
    phases, start, _ = tables(memories.current_state(state))
    assert [row[:2] for row in phases[1:]] == [
        ["SERENA_INIT", "SKIPPED"],
        ["SKILL_VALIDATION", "FAILED"],
        ["CONTEXT_RETRIEVAL", "PENDING"],
        ["SESSION_LOG", "PENDING"],
        ["GIT_STATE", "PENDING"],
    ]
    assert start[1][2:] == ["[ ]", "SKIPPED: no Serena"]
    assert start[5][2:] == ["[ ]", ""]


def test_a_file_that_was_never_read_is_not_ticked_where_its_gate_passed_without_it() -> None:
    passed = view({"CONTEXT_RETRIEVAL": ("PASS", "read .agents/HANDOFF.md 0123")})
    (_, start, _) = tables(memories.current_state(dataclasses.replace(passed, evidence=())))
    ticked = {row[1]: row[2] for row in start[1:]}
    assert (ticked["Read .agents/HANDOFF.md"], ticked["Read PROJECT-CONSTRAINTS.md"]) == ("[x]", "[ ]")


def test_completed_phases_are_in_order_and_with_those_that_were_not_needed() -> None:
    gates = {"SESSION_LOG": ("PASS", "x"), "SERENA_INIT": ("SKIPPED", "none"), "SKILL_VALIDATION": ("FAIL", "y")}
    assert json.loads(memories.state_json([view(gates)]))["phases_completed"] == ["SERENA_INIT", "SESSION_LOG"]


def test_gates_of_the_end_are_listed_once_they_were_checked() -> None:
    phases = tables(memories.current_state(view({"QUALITY_CHECKS": ("FAIL", "exit 1")})))[0]
    assert phases[-1] == ["QUALITY_CHECKS", "FAILED", "exit 1"]
    assert "GIT_COMMIT" not in str(phases)


def test_the_history_ends_with_the_tenth_session_and_says_so_when_there_is_none() -> None:
    assert headings(memories.history([ended(number) for number in range(30, 10, -1)]))[2:] == [
        f"2025-12-20-session-{number}" for number in range(30, 20, -1)
    ]
    assert memories.history([view()]).endswith("(Last 10)\n\n(none recorded)\n")
    assert memories.violations_log([]).endswith("## Violations\n\n(none recorded)\n")


ANYTHING = st.text(max_size=60) | st.sampled_from(
    [
        "a | b",
        "`|`",
        "\\|",
        "\\",
        "x\n# Heading\n",
        "|\n|-|\n| y |",
        "<!--",
        "```",
        "- [x] z",
        "\r\n\u2028\u0085|",
        "**",
    ]
)


@given(ANYTHING, ANYTHING, ANYTHING)
def test_no_text_breaks_a_table_or_adds_a_heading(objective: str, evidence: str, requirement: str) -> None:
    violations = (Violation(0, "INIT", requirement, "CRITICAL", evidence),)
    state = view({"SERENA_INIT": ("PASS", evidence)}, violations, objective=objective, branch=evidence)
    text = memories.current_state(state)
    assert headings(text) == headings(memories.current_state(view()))
    assert [{len(row) for row in table} for table in tables(text)] == [{3}, {4}, {4}]
    assert [len(table) for table in tables(text)] == [6, 11, 9]
    log = memories.violations_log([state])
    assert [[len(row) for row in table] for table in tables(log)] == [[5, 5]]
    past = ended(1, objective=objective, notes=evidence, decisions=json.dumps([requirement, evidence]))
    assert len(headings(memories.history([past]))) == 3


@given(ANYTHING)
def test_a_state_names_its_session_whatever_else_is_in_it(text: str) -> None:
    state = view({"SERENA_INIT": ("PASS", text)}, objective=text, branch=text)
    assert session_named(memories.current_state(state)) == RUN.id
    assert session_named(state_json([state])) == RUN.id


@pytest.mark.parametrize(
    ("text", "session"),
    [
        ("* Session ID: `2025-12-21-session-07`\n", "2025-12-21-session-07"),
        ("**Session ID:** one\nSession-ID: two\n", "one"),
        ('{"objective": "x", "session_id": "a-1"}', "a-1"),
        ("", None),
        ("# Session State\n", None),
        ("- **Session ID**: (none recorded)\n", None),
        ('{"session_id": ""}', None),
    ],
)
def test_a_state_by_any_author_is_known_by_its_session(text: str, session: str | None) -> None:
    assert session_named(text) == session


@pytest.mark.parametrize(
    (
        "length",
        "rows",
        "each",
    ),  # nothing reads beyond 8,000 characters; 100 rows, or 10 in each of 10 runs, are too many
    [pytest.param(10_000, 100, 10, id="small"), pytest.param(50_000, 500, 500, id="whole", marks=pytest.mark.long)],
)
@pytest.mark.parametrize("char", ["x", "\\", "|", "é"])
def test_the_longest_texts_stay_below_what_serena_takes(char: str, length: int, rows: int, each: int) -> None:
    long = char * length
    gates = {gate.name: ("PASS", long) for gate in AGENTS.gates}
    violations = tuple(Violation(row, long, long, long, long) for row in range(rows))
    worst = view(gates, violations, objective=long, branch=long)
    wide = dataclasses.replace(AGENTS, checklist=AGENTS.checklist * 100)
    past = [
        ended(day, objective=long, notes=long, decisions=json.dumps([long] * 100), violations=violations[:each])
        for day in range(10)
    ]
    for text in (
        memories.current_state(dataclasses.replace(worst, protocol=wide)),
        memories.checklist(dataclasses.replace(worst, protocol=wide)),
        memories.history(past),
        memories.violations_log([worst, *past]),
    ):
        assert len(text) < memories.MAX_MEMORY_CHARS
    assert "more)" in memories.checklist(dataclasses.replace(worst, protocol=wide))
    assert "2025-12-20-session-00" in memories.history(past)


def test_the_state_file_tells_of_the_active_run_and_of_those_that_ended() -> None:
    active = view({"SERENA_INIT": ("PASS", "it answers"), "GIT_STATE": ("FAIL", "")})
    state = json.loads(state_json([active, ended(3, notes="go on")]))
    assert state["session_id"] == RUN.id
    assert state["started_at"] == "2025-12-21T14:30:00Z"
    assert state["phases_completed"] == ["SERENA_INIT"]
    assert state["checklist"][0]["done"] is True
    assert [one["next_session_notes"] for one in state["history"]] == ["go on"]
