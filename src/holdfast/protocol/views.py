"""The protocol's results as JSON for tools, routes and commands alike: small, without empty fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.protocol import model
from holdfast.protocol.model import ALL, COMPLETE, Standing, Status
from holdfast.protocol.runs import Run, RunStatus
from holdfast.times import iso

if TYPE_CHECKING:
    from holdfast.protocol.results import Advanced, Blocked, CheckedGate, Ended, Recorded, Started, Validation

JSON = dict[str, Any]

ABORTED = RunStatus.ABORTED.value.upper()
GIVE_UP = "session_end with abort: true and the reason as summary"

_WORDS = {Status.PASS: "is met", Status.SKIPPED: "is not needed", Status.FAIL: "is not met"}


def started_view(started: Started) -> JSON:
    """Return as JSON a new run, its checklist, and what comes before work."""
    run = started.run
    return _present(
        {
            "session_id": run.id,
            "phase": run.phase,
            "blocked_until": model.blocked_until(started.protocol, Standing()),
            "checklist": [
                {
                    "part": item.part.value,
                    "requirement_level": item.level.value,
                    "step": item.step,
                    **({"gate": item.gate} if item.gate else {}),
                    "done": False,
                }
                for item in started.protocol.checklist
            ],
            "branch": run.branch,
            "starting_commit": run.starting_commit,
            "enforcement": started.enforcement.value,
        }
    )


def gate_view(checked: CheckedGate) -> JSON:
    gate, verdict = checked.gate, checked.verdict
    met = verdict.status.met
    detail = verdict.evidence if met else verdict.reason
    return _present(
        {
            "phase": gate.name,
            "requirement_level": gate.level.value,
            "status": verdict.status.value,
            "evidence": verdict.evidence or None,
            "blocking": gate.blocking,
            "message": f"{gate.name} {_WORDS[verdict.status]}{f': {detail}' if detail else ''}.",
            "current_phase": checked.standing.phase,
            "recovery": None if met else list(gate.recovery),
        }
    )


def validation_view(validation: Validation) -> JSON:
    """Return as JSON the results of all gates, and whether a blocking one is not met."""
    failed = [one.gate.name for one in validation.gates if one.gate.blocking and not one.verdict.status.met]
    return {
        "phase": ALL,
        "status": "FAIL" if failed else "PASS",
        "gates": [gate_view(one) for one in validation.gates],
        "blocking": bool(failed),
        "message": f"Not met: {', '.join(failed)}." if failed else "Every blocking gate is met.",
    }


def worktree_view(validation: Validation | None) -> JSON:
    """Return as JSON the results of a worktree's run, for scripts; NONE if it has no run."""
    if validation is None:
        return {"status": "NONE", "gates": [], "message": "There is no active session in this worktree."}
    return {**validation_view(validation), "session_id": validation.run.id}


def advanced_view(advanced: Advanced) -> JSON:
    """Return as JSON the phase that a run is in now, and its next gate."""
    active = advanced.active
    phase = active.standing.phase
    step = active.protocol.next_step(phase)
    return {
        "session_id": active.run.id,
        "phase": phase,
        "gates": [gate_view(one) for one in advanced.passed],
        "blocked_until": model.blocked_until(active.protocol, active.standing),
        "message": f"In {phase}." + (f" Next gate: {step.gate.name}." if step else ""),
    }


def recorded_view(recorded: Recorded) -> JSON:
    return {
        "session_id": recorded.run.id,
        "phase": recorded.gate.name,
        "recorded": True,
        "source": recorded.judged.source.value,
        "message": recorded.judged.message,
    }


def ended_view(ended: Ended) -> JSON:
    status, word = (ABORTED, "given up") if ended.given_up else (COMPLETE, "complete")
    return {
        "status": status,
        "session_id": ended.run.id,
        "phase": ended.run.phase if ended.given_up else COMPLETE,
        "commit_sha": ended.commit,
        "gates": [gate_view(one) for one in ended.passed],
        "message": f"{ended.run.id} is {word}.",
    }


def blocked_view(blocked: Blocked) -> JSON:
    """Return as JSON what is missing and how to get it."""
    active = blocked.active
    names = model.blocked_until(active.protocol, active.standing)
    message, following = "Nothing blocks.", "session_end"
    if blocked.missing:
        message = f"{blocked.missing[0][0].name} comes first."
        following = f"validate_gate {blocked.missing[0][0].name}"
    elif model.WORKING in active.protocol.phases[active.protocol.phases.index(active.standing.at) + 1 :]:
        following = f"advance_phase to {model.WORKING}"
    if names and not blocked.missing:
        message = f"Nothing is missing: {following.split()[0]} checks {', '.join(names)}."
    return _present(
        {
            "session_id": active.run.id,
            "phase": active.standing.phase,
            "blocked": bool(blocked.missing),
            "held_by": active.standing.held_by,
            "missing": [
                {
                    "gate": gate.name,
                    "requirement_level": gate.level.value,
                    "missing": verdict.reason,
                    "recovery": list(gate.recovery),
                }
                for gate, verdict in blocked.missing
            ],
            "next": following,
            "give_up": GIVE_UP,
            "message": message,
        }
    )


def run_view(run: Run) -> JSON:
    return _present(
        {
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
    )


def _present(values: JSON) -> JSON:
    return {name: value for name, value in values.items() if value is not None}
