"""Steps of a run: a gate is verified against the world, what it said is kept, and the run goes on or is held up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from typing import Protocol as Interface

from holdfast.protocol import model, queries
from holdfast.protocol.errors import GateUnmet
from holdfast.protocol.git.state import Git
from holdfast.protocol.model import ALL, BLOCKED, WORKING, CheckKind, Gate, Standing
from holdfast.protocol.project.settings import ProjectProtocol
from holdfast.protocol.replies import gate_view
from holdfast.protocol.runs import Scene, Verdict
from holdfast.protocol.situation import Situation
from holdfast.quoting import in_quotes
from holdfast.store import Store, Tx
from holdfast.store.calls import once, require_unanswered
from holdfast.times import iso

MAX_REQUIREMENT = 1_000
LONGEST_STEP = 500
"""Characters of a step towards a gate, in the project's words."""


class Verifier(Interface):
    """Checks a gate against the world."""

    async def verify(self, gate: Gate, scene: Scene) -> Verdict:
        """What checking found."""
        ...


class Steps:
    """Moves runs from phase to phase."""

    def __init__(self, store: Store, checks: Verifier) -> None:
        self._store = store
        self._checks = checks

    async def step(
        self, situation: Situation, *, ending: bool = False, skip_qa: bool = False
    ) -> tuple[Situation, Verdict, Gate]:
        """One phase on: the gate is verified, and the run is held up, or may go on to where it then stands."""
        protocol = situation.protocol
        step = protocol.next_step(situation.standing.phase)
        if step is None:
            held = protocol.gate(situation.standing.held_by or "")
            if held is None:
                raise GateUnmet(f"{situation.run.id} cannot go on from {situation.standing.phase}.")
            situation = await self.release(situation, skip_qa=skip_qa)
            step = protocol.next_step(situation.standing.phase)
            if step is None:
                raise GateUnmet(f"{situation.run.id} cannot go on from {situation.standing.phase}.")
        verdict, situation = await self.verify(situation, step.gate, skip_qa=skip_qa)
        if step.gate.blocking and not verdict.status.met:
            requirement = f"{step.gate.level} {step.gate.name}: {verdict.missing or verdict.evidence}"
            await self.hold(situation, step.gate, BLOCKED, requirement if ending else None)
            raise _unmet(step.gate, verdict)
        return situation.moved(model.advance(protocol, situation.standing)), verdict, step.gate

    async def keep(self, situation: Situation) -> None:
        """Store where the run stands on its way; its last step is stored together with the answer."""

        def write(tx: Tx) -> None:
            require_unanswered(tx, situation.key)
            queries.stand(tx, situation.run, situation.standing)

        await self._store.write(write)

    async def release(self, situation: Situation, *, skip_qa: bool = False) -> Situation:
        """Check the gate that holds a run up; met, the run is where it was before."""
        gate = situation.gate(situation.standing.held_by or "")
        verdict, situation = await self.verify(situation, gate, skip_qa=skip_qa)
        if not verdict.status.met:
            raise _unmet(gate, verdict)
        return situation

    async def renew(self, situation: Situation, *, skip_qa: bool) -> Situation:
        """Gates that judged the change are checked again when it is another one by now."""
        results = await self._store.read(lambda tx: queries.gates(tx, situation.run))
        behind = [gate for gate in situation.protocol.before(situation.standing.at) if gate.blocking]
        judged = [gate for gate in behind if gate.name in results and results[gate.name].fingerprint is not None]
        if not judged:
            return situation
        now = await Git(situation.worktree).fingerprint(situation.run.starting_commit)
        for gate in judged:
            if results[gate.name].fingerprint == now:
                continue
            verdict, situation = await self.verify(situation, gate, skip_qa=skip_qa)
            if not verdict.status.met:
                await self.hold(situation, gate, BLOCKED, f"{gate.level} {gate.name}: {verdict.missing}")
                raise _unmet(gate, verdict)
        return situation

    async def verify(self, situation: Situation, gate: Gate, *, skip_qa: bool = False) -> tuple[Verdict, Situation]:
        """Check a gate against the world and keep the result."""
        verdict = await self.check(situation, gate, skip_qa=skip_qa)

        def write(tx: Tx) -> Standing:
            require_unanswered(tx, situation.key)
            return record(tx, situation, gate, verdict)

        return verdict, situation.moved(await self._store.write(write))

    async def look(self, situation: Situation, gate: Gate) -> Verdict:
        """What a gate would say; commands are not run for a mere look, their last answer counts."""
        if any(check.kind is CheckKind.COMMAND and check.argv for check in gate.checks):
            results = await self._store.read(lambda tx: queries.gates(tx, situation.run))
            last = results.get(gate.name)
            if last is None:
                return Verdict(model.Status.FAIL, "", "its command was not run yet")
            return Verdict(model.Status(last.status), last.evidence, last.evidence, last.fingerprint)
        return await self.check(situation, gate)

    async def validate_all(self, situation: Situation, *, before_work: bool = False) -> dict[str, Any]:
        """Check every gate, or those that lie before work, and keep what was found."""
        protocol = situation.protocol
        gates = protocol.before(WORKING) if before_work else protocol.gates
        verdicts = [(gate, await self.check(situation, gate)) for gate in gates]

        def write(tx: Tx) -> dict[str, Any]:
            views = [gate_view(gate, verdict, record(tx, situation, gate, verdict)) for gate, verdict in verdicts]
            failed = [view["phase"] for view in views if view["status"] == "FAIL" and view["blocking"]]
            return {
                "phase": ALL,
                "status": "FAIL" if failed else "PASS",
                "gates": views,
                "blocking": bool(failed),
                "message": f"Not met: {', '.join(failed)}." if failed else "Every blocking gate is met.",
            }

        return await self._store.write(once(situation.key, write))

    async def hold(self, situation: Situation, gate: Gate, phase: str, requirement: str | None) -> None:
        run, standing = situation.run, model.held(situation.standing, gate, phase)

        def write(tx: Tx) -> None:
            require_unanswered(tx, situation.key)
            if requirement is not None:
                severity = "CRITICAL" if gate.level.binding else "WARNING"
                queries.add_violation(
                    tx, run, situation.standing.at, gate.name, requirement[:MAX_REQUIREMENT], severity
                )
            queries.stand(tx, run, standing)

        await self._store.write(write)

    async def check(self, situation: Situation, gate: Gate, *, skip_qa: bool = False) -> Verdict:
        """What a gate says now; nothing is kept."""
        run, project = situation.run, situation.project
        gate = with_present_commands(gate, project)

        def read(tx: Tx) -> Scene:
            # What is trusted is the project as it is now; a run that keeps other commands has none of them run.
            trusted = bool(project.digest) and queries.trusted_digest(tx, run.root) == project.digest
            known = {check.argv for check in gate.checks if check.argv} <= set(project.commands)
            evidence = queries.evidence(tx, run)
            return Scene(situation.worktree, run, evidence, trusted and known, skip_qa=skip_qa)

        return await self._checks.verify(gate, await self._store.read(read))


def record(tx: Tx, situation: Situation, gate: Gate, verdict: Verdict) -> Standing:
    """Keep what a gate said; where the run stands then."""
    run = situation.run
    before = queries.standing(tx, queries.find(tx, run.row_id) or run)
    queries.record_gate(tx, run, gate.name, verdict.status, verdict.evidence or verdict.missing, verdict.fingerprint)
    after = model.verified(situation.protocol, before, gate.name, verdict.status)
    if verdict.status.met:
        queries.recover(tx, run, gate.name, f"{gate.name} met at {iso(tx.now())}")
    if after.phase != before.phase:
        queries.stand(tx, run, after)
    else:
        queries.touch(tx, run)
    return after


def with_present_commands(gate: Gate, project: ProjectProtocol) -> Gate:
    """A run keeps its gates, but of their commands those that the project has now: only these can be trusted."""
    now = project.protocol.gate(gate.name)
    present = next((one for one in now.checks if one.kind is CheckKind.COMMAND and one.argv), None) if now else None
    if present is None:
        return gate
    kept = (present if check.kind is CheckKind.COMMAND and check.argv else check for check in gate.checks)
    return replace(gate, checks=tuple(kept))


def _unmet(gate: Gate, verdict: Verdict) -> GateUnmet:
    steps = " ".join(f"{number}. {in_quotes(step, LONGEST_STEP)}" for number, step in enumerate(gate.recovery, 1))
    return GateUnmet(f"{gate.name} is not met: {verdict.missing or verdict.evidence}.", recovery=steps or None)
