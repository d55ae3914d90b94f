"""Session state for a project without Serena: one JSON file next to its session logs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from holdfast.protocol.memories import (
    LATEST,
    MAX_VIOLATIONS,
    OUTCOMES,
    ImportedState,
    checklist_state,
    decisions_of,
    short,
    timestamp,
)
from holdfast.protocol.model import Status
from holdfast.protocol.runs import RunRecord, RunStatus
from holdfast.text import bounded_json


def state_json(views: Sequence[RunRecord]) -> str:
    """Serialize the active run, if there is one, and the history of the others."""
    active = [view for view in views if view.run.status == RunStatus.ACTIVE][:1]
    ended = [view for view in views if view.run.status != RunStatus.ACTIVE][:LATEST]
    state = {
        **(_active(active[0]) if active else {}),
        "violations": [one for view in (*active, *ended) for one in _violations(view)],
        "history": [_ended(view) for view in ended],
    }
    return json.dumps(state, ensure_ascii=False, indent=2) + "\n"


def read_state_json(text: str) -> ImportedState | None:
    """Parse the session of a state file, whoever wrote it; None if there is none."""
    try:
        state = bounded_json.loads(text)
    except ValueError:
        return None
    if not isinstance(state, dict) or not isinstance(state.get("session_id"), str) or not state["session_id"]:
        return None
    said = {name: value for name, value in state.items() if isinstance(value, str) and value}
    evidence = state.get("evidence")
    completed = state.get("phases_completed")
    return ImportedState(
        said["session_id"],
        said.get("objective"),
        said.get("branch"),
        said.get("starting_commit"),
        said.get("current_phase"),
        tuple(
            (gate, _evidence_text(evidence.get(gate) if isinstance(evidence, dict) else None))
            for gate in (completed if isinstance(completed, list) else [])
            if isinstance(gate, str)
        ),
    )


def _active(view: RunRecord) -> dict[str, Any]:
    run = view.run
    return {
        "session_id": run.id,
        "objective": run.objective,
        "branch": run.branch,
        "starting_commit": short(run.starting_commit),
        "started_at": timestamp(run.started_at),
        "current_phase": run.phase,
        "phases_completed": [result.gate for result in view.gates if result.status == Status.PASS],
        "checklist": [
            {"part": item.part.value, "req": item.level.value, "step": item.step, "done": done, "evidence": evidence}
            for item in view.protocol.checklist
            for done, evidence in [checklist_state(item, view)]
        ],
        "evidence": {result.gate: {"status": result.status, "evidence": result.evidence} for result in view.gates},
    }


def _violations(view: RunRecord) -> list[dict[str, Any]]:
    return [
        {
            "session_id": view.run.id,
            "timestamp": timestamp(one.at),
            "phase": one.phase,
            "requirement": one.requirement,
            "severity": one.severity,
            "recovery": one.recovery,
        }
        for one in view.violations[-MAX_VIOLATIONS:]
    ]


def _ended(view: RunRecord) -> dict[str, Any]:
    run = view.run
    return {
        "session_id": run.id,
        "objective": run.objective,
        "outcome": OUTCOMES.get(RunStatus(run.status), run.status.upper()),
        "commit_sha": short(run.end_commit),
        "key_decisions": decisions_of(view),
        "next_session_notes": run.notes,
    }


def _evidence_text(evidence: Any) -> str:
    told = evidence.get("evidence") if isinstance(evidence, dict) else evidence
    return told if isinstance(told, str) else ""
