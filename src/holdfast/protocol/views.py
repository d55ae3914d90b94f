"""Views of gates and checklists for agents: small, without empty fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.protocol.model import Gate, Protocol, Standing, Status
from holdfast.protocol.runs import Run, Verdict
from holdfast.times import iso


def gate_view(gate: Gate, verdict: Verdict, standing: Standing) -> dict[str, Any]:
    """The answer of validate_gate."""
    met = verdict.status.met
    said = verdict.evidence if met else (verdict.missing or verdict.evidence)
    view: dict[str, Any] = {
        "phase": gate.name,
        "requirement_level": gate.level.value,
        "status": verdict.status.value,
        "evidence": verdict.evidence,
        "blocking": gate.blocking,
        "message": f"{gate.name} {_WORDS[verdict.status]}: {said}."
        if said
        else f"{gate.name} {_WORDS[verdict.status]}.",
        "current_phase": standing.phase,
    }
    if not met:
        view["recovery"] = list(gate.recovery)
    return {name: value for name, value in view.items() if value != ""}


def missing_view(gate: Gate, verdict: Verdict) -> dict[str, Any]:
    """One line of get_blocked_reason."""
    return {
        "gate": gate.name,
        "requirement_level": gate.level.value,
        "missing": verdict.missing or verdict.evidence,
        "recovery": list(gate.recovery),
    }


def run_view(run: Run) -> dict[str, Any]:
    """Summary of a run."""
    view = {
        "session_id": run.id,
        "project": run.root,
        "protocol": run.protocol,
        "objective": run.objective,
        "phase": run.phase,
        "status": run.status,
        "started_at": iso(run.started_at),
        "ended_at": None if run.ended_at is None else iso(run.ended_at),
        "commit_sha": run.end_commit,
    }
    return {name: value for name, value in view.items() if value is not None}


def checklist_view(protocol: Protocol, gates: Mapping[str, Status]) -> list[dict[str, Any]]:
    """The checklist: each step, and whether its gate is met."""
    return [
        {
            "part": item.part.value,
            "requirement_level": item.level.value,
            "step": item.step,
            **({"gate": item.gate} if item.gate else {}),
            "done": bool(item.gate and gates.get(item.gate, Status.FAIL).met),
        }
        for item in protocol.checklist
    ]


_WORDS = {Status.PASS: "is met", Status.SKIPPED: "is not needed", Status.FAIL: "is not met"}
