"""Steps of a run: a gate is verified, its result is stored, and the run continues or is blocked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from typing import Protocol as Interface

from holdfast.git.state import Git, Tips
from holdfast.protocol import model, queries
from holdfast.protocol.errors import GateUnmet, NoRun
from holdfast.protocol.model import BLOCKED, WORKING, CheckKind, Gate, Standing
from holdfast.protocol.project.settings import ProjectProtocol
from holdfast.protocol.runs import ActiveRun, GateResult, Run, Scene, Verdict, recovery_steps
from holdfast.store import Store, Tx
from holdfast.store.calls import first_time, require_unanswered
from holdfast.times import iso

if TYPE_CHECKING:
    from holdfast.protocol.results import CheckedGate, Validation

MAX_REQUIREMENT = 1_000
BY_EVIDENCE = frozenset({CheckKind.FILE_READ, CheckKind.FILE_EXISTS, CheckKind.TOOL_CALLED})
LOOK = "get_blocked_reason says where the session stands."


class Verifier(Interface):
    async def verify(self, gate: Gate, scene: Scene) -> Verdict:
        """Check a gate and return the result."""


class Steps:
    """Moves runs from phase to phase."""

    def __init__(self, store: Store, checks: Verifier) -> None:
        self._store = store
        self._checks = checks

    async def advance(self, active: ActiveRun, phase: str) -> tuple[ActiveRun, tuple[CheckedGate, ...]]:
        """Verify each gate up to a phase: the run is blocked, or returned in that phase with the gates it passed.

        Standings on the way are stored; the last one is left to the caller, who stores it together with the answer.
        """
        from holdfast.protocol.results import CheckedGate

        def write(tx: Tx) -> None:
            require_unanswered(tx, active.key)
            queries.stand(tx, active.run, active.standing)

        passed: list[CheckedGate] = []
        while active.standing.phase != phase:
            if passed:
                await self._store.write(write)
            active, verdict, gate = await self._step(active)
            passed.append(CheckedGate(gate, verdict, active.standing))
        return active, tuple(passed)

    async def _step(self, active: ActiveRun) -> tuple[ActiveRun, Verdict, Gate]:
        active = await self.release(active)
        step = active.protocol.next_step(active.standing.phase)
        if step is None:
            raise GateUnmet(f"{active.run.id} cannot go on from {active.standing.phase}.")
        verdict, active = await self._pass(active, step.gate)
        after = model.advance(active.protocol, active.standing)
        if after is None or active.standing.at != step.source:
            raise GateUnmet(f"Another call moved {active.run.id} to {active.standing.phase}.", recovery=LOOK)
        return active.moved(after), verdict, step.gate

    async def release(self, active: ActiveRun) -> ActiveRun:
        """Check the gate that blocks a run, if one does; if it is met, the run is where it was before."""
        gate = active.protocol.gate(active.standing.held_by or "")
        if gate is None:
            return active
        verdict, active = await self._verify(active, gate)
        if not verdict.status.met:
            raise _unmet(gate, verdict)
        return active

    async def renew(self, active: ActiveRun) -> ActiveRun:
        """Check gates that depend on the change again, if the change is different by now."""
        results = await self._store.read(lambda tx: queries.gates(tx, active.run))
        judged = {result.gate: result.fingerprint for result in results if result.fingerprint is not None}
        behind = [gate for gate in active.protocol.before(active.standing.at) if gate.blocking and gate.name in judged]
        if not behind:
            return active
        now = await Git(active.worktree).fingerprint(active.run.starting_commit)
        for gate in behind:
            if judged[gate.name] != now:
                _, active = await self._pass(active, gate)
        return active

    async def _pass(self, active: ActiveRun, gate: Gate) -> tuple[Verdict, ActiveRun]:
        """Check a gate and store the result; if it is unmet and blocks, hold the run and raise GateUnmet.

        An unmet MUST is a violation if it does not block, or if the run was to be ended.
        """
        verdict, active = await self._verify(active, gate)
        if verdict.status.met:
            return verdict, active
        requirement = f"{gate.level} {gate.name}: {verdict.reason}"
        if gate.blocking:
            await self.hold(active, gate, BLOCKED, *([requirement] if active.ending else []))
            raise _unmet(gate, verdict)
        if gate.level.binding:
            await self.hold(active, gate, None, requirement)
        return verdict, active

    async def _verify(self, active: ActiveRun, gate: Gate) -> tuple[Verdict, ActiveRun]:
        """Check a gate and store the result."""
        verdict = await self.check(active, gate)

        def write(tx: Tx) -> Standing:
            require_unanswered(tx, active.key)
            return record(tx, active, gate, verdict)

        return verdict, active.moved(await self._store.write(write))

    async def missing(self, active: ActiveRun, gates: Sequence[Gate]) -> list[tuple[Gate, Verdict]]:
        """Preview gates without running commands, whose last result counts; return those that are not met."""
        results = {result.gate: result for result in await self._store.read(lambda tx: queries.gates(tx, active.run))}
        found = []
        for gate in gates:
            if any(check.argv for check in gate.checks):
                last = results.get(gate.name)
                verdict = _stored(last) if last else Verdict(model.Status.FAIL, "", "its command has not run yet")
            else:
                verdict = await self.check(active, gate)
            if not verdict.status.met:
                found.append((gate, verdict))
        return found

    async def validate(self, active: ActiveRun, gates: Sequence[Gate]) -> Validation:
        """Check gates and store the results."""
        from holdfast.protocol.results import CheckedGate, Validation

        verdicts = [(gate, await self.check(active, gate)) for gate in gates]

        def write(tx: Tx) -> Validation:
            checked = [CheckedGate(gate, verdict, record(tx, active, gate, verdict)) for gate, verdict in verdicts]
            return Validation(active.run, tuple(checked))

        return await self._store.write(first_time(active.key, write))

    async def results_of(self, run: Run, *, only_before_work: bool) -> Validation:
        """Return the stored results of a run that ended."""
        from holdfast.protocol.results import CheckedGate, Validation

        stored = await self._store.read(lambda tx: queries.record_of(tx, run))
        checked = []
        for gate in stored.protocol.gates_until(only_before_work):
            result = stored.result(gate.name)
            verdict = _stored(result) if result else Verdict(model.Status.FAIL, "", "not checked")
            checked.append(CheckedGate(gate, verdict, Standing(run.phase)))
        return Validation(run, tuple(checked))

    async def reconsider(self, active: ActiveRun) -> None:
        """Open the gates before work that what a hook has just seen is enough for."""
        for gate in active.protocol.before(WORKING):
            unmet = not active.standing.gates.get(gate.name, model.Status.FAIL).met
            if unmet and gate.checks and all(check.kind in BY_EVIDENCE for check in gate.checks):
                verdict = await self.check(active, gate)
                if verdict.status.met:
                    await self._store.write(partial(record, active=active, gate=gate, verdict=verdict))

    async def hold(
        self, active: ActiveRun, gate: Gate, phase: str | None, *requirements: str, tips: Tips | None = None
    ) -> None:
        """Store each requirement as a violation; with a phase, block the run in it until the gate is met."""
        run = active.run

        def write(tx: Tx) -> None:
            require_unanswered(tx, active.key)
            for requirement in requirements:
                short = requirement[:MAX_REQUIREMENT]
                queries.add_violation(tx, run, active.standing.at, gate.name, short, severity(gate))
            if tips is not None:
                queries.add_tips(tx, run, tips)
            if phase is not None:
                queries.stand(tx, run, model.held(active.standing, gate, phase))

        await self._store.write(write)

    async def check(self, active: ActiveRun, gate: Gate) -> Verdict:
        """Check a gate without storing the result."""
        run, project = active.run, active.project
        gate = with_present_commands(gate, project)

        def read(tx: Tx) -> Scene:
            # Trust covers the project as it is now; other commands that a run has kept are not run.
            trusted = bool(project.digest) and queries.trusted(tx, run.root)[0] == project.digest
            known = {check.argv for check in gate.checks if check.argv} <= set(project.commands)
            evidence = queries.evidence(tx, run)
            return Scene(active.worktree, run, evidence, trusted and known, skip_qa=active.skip_qa)

        return await self._checks.verify(gate, await self._store.read(read))


def _stored(result: GateResult) -> Verdict:
    return Verdict(model.Status(result.status), result.evidence, result.evidence, result.fingerprint)


def severity(gate: Gate) -> str:
    """Return how severe a violation of a gate is."""
    return "CRITICAL" if gate.level.binding else "WARNING"


def record(tx: Tx, active: ActiveRun, gate: Gate, verdict: Verdict) -> Standing:
    """Store a gate's result; return the run's standing after it."""
    run = active.run
    now = queries.active(tx, run.root)
    if now is None or now.row_id != run.row_id:
        raise NoRun(f"{run.id} has ended meanwhile.", recovery="Start another with session_start.")
    before = queries.standing(tx, now)
    found = verdict.evidence if verdict.status.met else verdict.reason
    queries.record_gate(tx, run, gate.name, verdict.status, found, verdict.fingerprint)
    after = model.verified(before, gate.name, verdict.status)
    if verdict.status.met:
        queries.recover(tx, run, gate.name, f"{gate.name} met at {iso(tx.now())}")
    if after.phase != before.phase:
        queries.stand(tx, run, after)
    else:
        queries.touch(tx, run)
    return after


def with_present_commands(gate: Gate, project: ProjectProtocol) -> Gate:
    """Replace a gate's commands by those the project has now: only these can be trusted."""
    now = project.protocol.gate(gate.name)
    present = next((check for check in now.checks if check.argv), None) if now else None
    if present is None:
        return gate
    return replace(gate, checks=tuple(present if check.argv else check for check in gate.checks))


def _unmet(gate: Gate, verdict: Verdict) -> GateUnmet:
    return GateUnmet(f"{gate.name} is not met: {verdict.reason}.", recovery=recovery_steps(gate) or None)
