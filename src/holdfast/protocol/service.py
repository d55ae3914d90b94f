"""Protocol: runs that go from phase to phase, each step earned by what the server verified itself."""

from __future__ import annotations

import json
import shlex
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import BadInput
from holdfast.project import Root, RootSource, path_of
from holdfast.protocol import definition, model, queries
from holdfast.protocol.errors import GateUnmet, NoProject, NoRun, ProtocolInvalid, RunActive, UnknownGate
from holdfast.protocol.evidence import Claim, judge
from holdfast.protocol.git.state import Git
from holdfast.protocol.in_time import in_time
from holdfast.protocol.memories import ImportedState
from holdfast.protocol.model import ALL, BLOCKED, COMPLETE, VIOLATION, CheckKind, Gate, Protocol, Standing
from holdfast.protocol.project.agent_settings import AgentSettings, brings_nothing, read_agent_settings
from holdfast.protocol.project.settings import ProjectProtocol, configured_project, read_project
from holdfast.protocol.replies import checklist_view, gate_view, missing_view, run_view
from holdfast.protocol.runs import EvidenceKind, Run, RunStatus, RunView, Source, Verdict
from holdfast.protocol.situation import Situation, Situations
from holdfast.protocol.steps import Steps, Verifier, record
from holdfast.protocol.worktree import Worktree, logged_numbers, worktree_of
from holdfast.quoting import in_quotes, named, quoted
from holdfast.store import Store, Tx
from holdfast.store.calls import CallKey, once, require_unanswered

MAX_OBJECTIVE = 2_000
MAX_TEXT = 20_000
MAX_ITEMS = 50
MAX_SUBJECT = 1_000
LONGEST_FAULT = 500
HISTORY = 10


ForeignState = Callable[[Path], Awaitable[ImportedState | None]]
"""A current-state memory that lies in a worktree."""


class Protocols:
    """The only door to protocol."""

    def __init__(self, store: Store, checks: Verifier, foreign_state: ForeignState) -> None:
        self._store = store
        self._steps = Steps(store, checks)
        self._find = Situations(store)
        self._foreign_state = foreign_state

    # -- what an agent calls ------------------------------------------------------------------------------------------

    async def start(
        self,
        root: Root | None,
        objective: str,
        *,
        branch: str | None = None,
        starting_commit: str | None = None,
        key: CallKey | None = None,
    ) -> dict[str, Any]:
        """Begin a run; refused while one is active."""
        await self._store.read(lambda tx: require_unanswered(tx, key, reads_only=True))
        worktree = await self._find.worktree(root)
        text = objective.strip()
        if not text or len(text) > MAX_OBJECTIVE or "\0" in text:
            raise BadInput("objective", f"must be 1 to {MAX_OBJECTIVE} characters without NUL bytes")
        if branch is not None and not 0 < len(branch) <= 255:
            raise BadInput("branch", "must be 1 to 255 characters")
        project = await in_time(read_project, worktree.path)
        _refuse_faults(project)
        branch, commit = await _git_state(worktree, project.protocol, branch, starting_commit)
        foreign = await self._foreign_state(worktree.path)
        on_disk = await in_time(logged_numbers, worktree.path)
        kept = definition.dumps(project.protocol)

        def write(tx: Tx) -> dict[str, Any]:
            queries.orphan(tx, worktree.root)
            active = queries.active(tx, worktree.root)
            if active is not None:
                raise RunActive(
                    f"Session already active: {active.id} ({quoted(active.objective, 100)}), in phase {active.phase}.",
                    recovery="Go on with it (get_blocked_reason), or end it with session_end.",
                )
            imported = _import(tx, worktree, foreign, kept, project.protocol.name) if foreign else None
            run = queries.begin(
                tx,
                root=worktree.root,
                project=worktree.project,
                protocol=project.protocol.name,
                definition=kept,
                objective=text,
                branch=branch,
                starting_commit=commit,
                on_disk=on_disk,
            )
            started = {
                "session_id": run.id,
                "phase": run.phase,
                "blocked_until": model.blocked_until(project.protocol, Standing()),
                "checklist": checklist_view(project.protocol, {}),
                "branch": branch,
                "starting_commit": commit,
                "enforcement": project.enforcement.value,
                "imported": imported,
            }
            return {name: value for name, value in started.items() if value is not None}

        return await self._store.write(once(key, write))

    async def validate(self, root: Root | None, phase: str, key: CallKey | None = None) -> dict[str, Any]:
        """Check a gate, or all of them, and write down what was found."""
        situation = await self._find.of(root, key)
        if phase == ALL:
            return await self._steps.validate_all(situation)
        gate = situation.gate(phase)
        verdict = await self._steps.check(situation, gate)
        return await self._store.write(
            once(key, lambda tx: gate_view(gate, verdict, record(tx, situation, gate, verdict)))
        )

    async def advance(self, root: Root | None, to: str | None, key: CallKey | None = None) -> dict[str, Any]:
        """Go on to the next phase, or up to `to`; each gate on the way is verified."""
        situation = await self._find.of(root, key)
        order = situation.protocol.phases
        if to is not None and to not in order:
            raise UnknownGate(f"There is no phase {in_quotes(to, 64)}.", recovery=f"Phases: {', '.join(order)}.")
        if to == COMPLETE or situation.standing.at == order[-2]:
            raise GateUnmet("The last step is session_end.", recovery="Call session_end with a summary.")
        target = to or order[order.index(situation.standing.at) + 1]
        if order.index(target) <= order.index(situation.standing.at):
            raise BadInput("to", f"must lie ahead of {situation.standing.at}")
        passed: list[dict[str, Any]] = []
        while situation.standing.phase != target:
            if passed:
                await self._steps.keep(situation)
            situation, verdict, gate = await self._steps.step(situation)
            passed.append(gate_view(gate, verdict, situation.standing))
        run, standing = situation.run, situation.standing
        step = situation.protocol.next_step(target)
        reply = {
            "session_id": run.id,
            "phase": standing.phase,
            "gates": passed,
            "blocked_until": model.blocked_until(situation.protocol, standing),
            "message": f"In {target}." + (f" Next gate: {step.gate.name}." if step else ""),
        }

        def write(tx: Tx) -> dict[str, Any]:
            queries.stand(tx, run, standing)
            return reply

        return await self._store.write(once(key, write))

    async def record(
        self, root: Root | None, phase: str, kind: str, evidence: str, key: CallKey | None = None
    ) -> dict[str, Any]:
        """Keep what the agent says; what can be compared with the world is."""
        situation = await self._find.of(root, key)
        gate = situation.gate(phase)
        if not 0 < len(kind) <= 64:
            raise BadInput("evidence_type", "must be 1 to 64 characters")
        if not 0 < len(evidence) <= MAX_TEXT or "\0" in evidence:
            raise BadInput("evidence", f"must be 1 to {MAX_TEXT} characters without NUL bytes")
        claim = await judge(Claim(gate, kind, evidence), situation.worktree)

        def write(tx: Tx) -> dict[str, Any]:
            run = situation.run
            queries.add_evidence(tx, run, gate.name, claim.kind, claim.subject, claim.detail, claim.source)
            return {
                "session_id": run.id,
                "phase": gate.name,
                "recorded": True,
                "source": claim.source.value,
                "message": claim.message,
            }

        return await self._store.write(once(key, write))

    async def end(
        self,
        root: Root | None,
        summary: str,
        *,
        key_decisions: Sequence[str] = (),
        next_session_notes: str | None = None,
        skip_qa: bool = False,
        key: CallKey | None = None,
    ) -> dict[str, Any]:
        """End the run: every gate that is left is verified, in order; the first unmet blocking one holds it up."""
        if not summary.strip() or len(summary) > MAX_TEXT:
            raise BadInput("summary", f"must be 1 to {MAX_TEXT} characters")
        if len(key_decisions) > MAX_ITEMS or any(not 0 < len(one) <= MAX_OBJECTIVE for one in key_decisions):
            raise BadInput("key_decisions", f"must be at most {MAX_ITEMS} texts of 1 to {MAX_OBJECTIVE} characters")
        if next_session_notes is not None and len(next_session_notes) > MAX_TEXT:
            raise BadInput("next_session_notes", f"must be at most {MAX_TEXT} characters")
        situation = await self._find.of(root, key)
        if situation.standing.phase in (BLOCKED, VIOLATION):
            situation = await self._steps.release(situation, skip_qa=skip_qa)
        situation = await self._steps.renew(situation, skip_qa=skip_qa)
        passed: list[dict[str, Any]] = []
        while situation.standing.phase != COMPLETE:
            if passed:
                await self._steps.keep(situation)
            situation, verdict, gate = await self._steps.step(situation, ending=True, skip_qa=skip_qa)
            passed.append(gate_view(gate, verdict, situation.standing))
        run, standing = situation.run, situation.standing
        commit = (await Git(situation.worktree).state()).head
        decisions = json.dumps(list(key_decisions), ensure_ascii=False) if key_decisions else None

        def write(tx: Tx) -> dict[str, Any]:
            queries.stand(tx, run, standing)
            queries.end(tx, run, commit, summary.strip(), decisions, next_session_notes or None)
            return {
                "status": COMPLETE,
                "session_id": run.id,
                "phase": COMPLETE,
                "commit_sha": commit,
                "gates": passed,
                "message": f"{run.id} is complete.",
            }

        return await self._store.write(once(key, write))

    async def blocked(self, root: Root | None) -> dict[str, Any]:
        """What is missing, how to get it, in order."""
        situation = await self._find.of(root)
        names = model.blocked_until(situation.protocol, situation.standing)
        missing = []
        for name in names:
            gate = situation.gate(name)
            verdict = await self._steps.look(situation, gate)
            if not verdict.status.met:
                missing.append(missing_view(gate, verdict))
        held = situation.standing.held_by
        first = missing[0]["gate"] if missing else None
        if first:
            message = f"{first} comes first."
        elif names:
            message = f"All is there: advance_phase checks {', '.join(names)}."
        else:
            message = "Nothing blocks."
        reason = {
            "session_id": situation.run.id,
            "phase": situation.standing.phase,
            "blocked": bool(missing),
            "held_by": held,
            "missing": missing,
            "message": message,
        }
        return {name: value for name, value in reason.items() if value is not None}

    # -- what hooks, the command line and the mirror call -------------------------------------------------------------

    async def situation(self, cwd: str) -> Situation | None:
        """The active run of the worktree that a directory is in."""
        worktree = await self._find.at(cwd)
        if worktree is None:
            return None
        return await self._find.active(worktree)

    async def standing_at(self, cwd: str) -> tuple[Situation | None, ProjectProtocol | None]:
        """The active run of the worktree that a directory is in; else the protocol that the project asks for."""
        worktree = await self._find.at(cwd)
        if worktree is None:
            return None, None
        active = await self._find.active(worktree)
        return active, None if active else await in_time(configured_project, worktree.path)

    async def start_run(self, cwd: str, objective: str) -> Run:
        """Begin a run for an agent whose project has its hook do it."""
        worktree = await self._find.at(cwd)
        if worktree is None:
            raise NoProject(f"There is no directory {in_quotes(cwd, 200)} on this machine.")
        await self.start(Root(worktree.root, None, RootSource.DIRECTORY), objective[:MAX_OBJECTIVE])
        run = await self._store.read(lambda tx: queries.active(tx, worktree.root))
        if run is None:
            raise NoRun("The run ended at once.")
        return run

    async def saw(self, situation: Situation, kind: EvidenceKind, subject: str, detail: str) -> None:
        """A hook showed something happening; the same thing is kept once."""
        run, short = situation.run, subject[:MAX_SUBJECT]

        def seen(tx: Tx) -> bool:
            return queries.known(tx, run, kind.value, short, detail, Source.HOOK)

        def write(tx: Tx) -> None:
            if not seen(tx):
                queries.add_evidence(tx, run, None, kind.value, short, detail, Source.HOOK)

        if not await self._store.read(seen):
            await self._store.write(write)

    async def missing(self, situation: Situation) -> list[tuple[Gate, Verdict]]:
        """What still stands between here and the end, looked at afresh."""
        found = []
        for gate in model.open_gates(situation.protocol, situation.standing):
            verdict = await self._steps.look(situation, gate)
            if not verdict.status.met:
                found.append((gate, verdict))
        return found

    async def violated(self, situation: Situation, gate: Gate, requirement: str) -> None:
        """Something was done against a gate: it is written down, and the run waits until the gate is met."""
        await self._steps.hold(situation, gate, VIOLATION, requirement)

    async def views(self, root: str, limit: int = HISTORY) -> list[RunView]:
        """The runs of a worktree's project, the newest first; the worktree's own active one before all."""

        worktree = await in_time(worktree_of, path_of(root) or Path(root))
        project = worktree.project if worktree else root

        def read(tx: Tx) -> list[RunView]:
            active = queries.active(tx, root)
            others = [
                run
                for run in queries.history(tx, project, limit)
                if (active is None or run.row_id != active.row_id) and run.status != RunStatus.ACTIVE
            ]
            return [
                RunView(
                    run,
                    definition.loads(run.definition),
                    queries.gates(tx, run),
                    queries.evidence(tx, run),
                    queries.violations(tx, run),
                )
                for run in [*([active] if active else []), *others][:limit]
            ]

        return await self._store.read(read)

    async def views_of(self, root: Root | None) -> list[RunView]:
        """The runs of the caller's project."""
        return await self.views((await self._find.worktree(root)).root)

    async def validation(self, path: str, *, before_commit: bool) -> dict[str, Any]:
        """Every gate of a worktree's run, for scripts and CI; before a commit, those that allow work."""
        situation = await self.situation(path)
        if situation is None:
            return {"status": "NONE", "gates": [], "message": "There is no active session in this worktree."}
        result = await self._steps.validate_all(situation, before_work=before_commit)
        return {**result, "session_id": situation.run.id}

    async def runs(self, path: str | None, limit: int) -> list[dict[str, Any]]:
        """Runs of one worktree or of all, the newest first, in short."""
        worktree = await self._find.at(path) if path is not None else None
        if path is not None and worktree is None:
            return []
        root = worktree.root if worktree else None
        return [run_view(run) for run in await self._store.read(lambda tx: queries.recent(tx, root, limit))]

    async def trust(self, root: str, digest: str, agent_digest: str = "") -> None:
        """The owner trusts this content of a worktree: of its protocol, and of what it brings for its agent."""
        await self._store.write(lambda tx: queries.trust(tx, root, digest, agent_digest))

    async def untrust(self, root: str) -> bool:
        """The owner takes that back."""
        return await self._store.write(lambda tx: queries.untrust(tx, root))

    async def trusted(self, root: str) -> str | None:
        """The digest that is trusted in a worktree."""
        return await self._store.read(lambda tx: queries.trusted_digest(tx, root))

    async def trusted_for_agents(self, root: str) -> str | None:
        """The digest of an agent's settings that is trusted in a worktree."""
        return await self._store.read(lambda tx: queries.trusted_agent_digest(tx, root))

    async def settings_off(self, directory: Path) -> str | None:
        """Why a managed agent may not follow the settings that its project brings, and what to do; None where it may.

        It may where they are trusted as they are now, and where there are none. Those of a directory below the top of
        its worktree are not compared, so they are never followed.
        """
        worktree, found = await in_time(_brought, directory)
        if found is None:
            return None
        if worktree is None or found.problem is not None:
            return f"The project's settings are off, because they cannot be trusted: {found.problem}"
        trusted = await self.trusted_for_agents(worktree.root)
        if trusted == found.digest:
            return None
        why = "they were changed since they were trusted" if trusted else "nobody trusted them yet"
        return f"The project's settings are off: {why}. `holdfast trust {shlex.quote(str(directory))}` shows them."

    async def trusts(self, root: str) -> bool:
        """Whether the owner trusts the worktree's present content."""
        worktree = await self._find.at(str(path_of(root) or ""))
        if worktree is None:
            return False
        project = await in_time(read_project, worktree.path)
        return bool(project.digest) and project.digest == await self.trusted(root)

    async def sweep(self) -> None:
        """Runs that nobody touched for a day are no longer in the way."""
        await self._store.write(lambda tx: queries.orphan(tx))

    def applies_to(self, root: Root | None) -> bool:
        """Whether a project has a protocol, so that its tools are listed there."""
        path = path_of(root.uri) if root else None
        worktree = worktree_of(path) if path else None
        marks = (".holdfast/protocol.toml", ".agents")
        return worktree is not None and any((worktree.path / mark).exists() for mark in marks)


def _brought(directory: Path) -> tuple[Worktree | None, AgentSettings | None]:
    """The worktree of a directory, and what it brings for an agent; no settings where it brings nothing."""
    if brings_nothing(directory):
        return None, None
    worktree = worktree_of(directory)
    try:
        if worktree is None or not worktree.path.samefile(directory):
            top = "another directory" if worktree is None else worktree.path
            return worktree, AgentSettings(problem=f"they would be those of {top}, of which it is a part.")
    except OSError as error:
        return worktree, AgentSettings(problem=f"{directory} cannot be read ({error.strerror}).")
    return worktree, read_agent_settings(worktree.path)


def _refuse_faults(project: ProjectProtocol) -> None:
    if project.faults:
        raise ProtocolInvalid(
            f"The project's protocol cannot be used: {in_quotes(str(project.faults[0]), LONGEST_FAULT)}",
            recovery="`holdfast protocol check` shows every fault.",
        )


async def _git_state(
    worktree: Worktree, protocol: Protocol, branch: str | None, commit: str | None
) -> tuple[str | None, str | None]:
    """Branch and starting commit: as given, else as git has them."""
    needed = any(check.kind is CheckKind.COMMITTED for gate in protocol.gates for check in gate.checks)
    if not worktree.is_git:
        if needed:
            raise NoProject(
                f"{named(str(worktree.path), LONGEST_FAULT)} is no git repository.",
                recovery="Run `git init` there first.",
            )
        return branch, None
    git = Git(worktree.path)
    state = await git.state()
    # A run that began at an older commit would have its work committed before it began.
    if commit is not None and (state.head is None or await git.resolve(commit) != state.head):
        raise BadInput("starting_commit", "is not HEAD of this worktree", recovery="Leave it out: HEAD is taken.")
    return branch or state.branch, state.head


def _import(tx: Tx, worktree: Worktree, foreign: ImportedState, kept: str, protocol: str) -> dict[str, Any] | None:
    """A state that something else left behind goes into the history; one of our own is there already."""
    if not queries.import_run(tx, worktree.root, worktree.project, protocol, kept, foreign):
        return None
    found = {"session_id": foreign.session_id, "objective": foreign.objective, "phase": foreign.phase}
    return {name: value for name, value in found.items() if value}
