"""The protocol's service: runs that go from phase to phase through gates that Holdfast verifies itself."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from holdfast.errors import BadInput
from holdfast.files.in_time import in_time
from holdfast.git.state import Git, GitFault
from holdfast.identity.project import Root, RootSource, path_of
from holdfast.identity.worktree import Worktree, worktree_of
from holdfast.protocol import definition, model, queries
from holdfast.protocol.commit_gate import CommitGate, early_commits, untouched
from holdfast.protocol.errors import GateUnmet, NoProject, NoRun, ProtocolInvalid, RunActive, UnknownGate
from holdfast.protocol.evidence import judge
from holdfast.protocol.model import ALL, COMPLETE, VIOLATION, CheckKind, Gate, Protocol, Standing
from holdfast.protocol.project.settings import SETTINGS, Enforcement, ProjectProtocol, configured_project, read_project
from holdfast.protocol.runs import ActiveRun, EvidenceKind, Run, RunRecord, RunStatus, Source, Verdict
from holdfast.protocol.steps import Steps, Verifier, severity
from holdfast.store import Store, Tx
from holdfast.store.calls import CallKey, first_time, require_unanswered
from holdfast.text.quoting import in_quotes, named, quoted

if TYPE_CHECKING:
    from holdfast.protocol.results import Advanced, Blocked, Ended, Recorded, Started, Validation

MAX_OBJECTIVE = 2_000
MAX_TEXT = 20_000
MAX_PATH_BYTES = 4096
MAX_ITEMS = 50
MAX_SUBJECT = 1_000
MAX_NAME = 255
MAX_KIND = 64
MAX_FAULT_CHARS = 500
HISTORY = 10


class Protocols:
    """The protocol's operations; everything outside this package goes through here."""

    def __init__(self, store: Store, checks: Verifier, home: Path) -> None:
        self._store = store
        self._checks = checks
        self._steps = Steps(store, checks)
        self._gate = CommitGate(home)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # -- what an agent calls ------------------------------------------------------------------------------------------

    async def start(
        self,
        root: Root | None,
        objective: str,
        *,
        branch: str | None = None,
        starting_commit: str | None = None,
        key: CallKey | None = None,
    ) -> Started:
        """Begin a run. Raises RunActive while one is active."""
        from holdfast.protocol.checks.files import logged_numbers
        from holdfast.protocol.results import Started

        worktree = await self._worktree(root)
        async with self._settled(worktree):
            await self._store.read(lambda tx: require_unanswered(tx, key, reads_only=True))
            text = objective.strip()
            _require("objective", text, MAX_OBJECTIVE)
            _require("branch", branch, MAX_NAME)
            project = await in_time(read_project, worktree.path)
            if project.faults:
                raise ProtocolInvalid(
                    f"The project's protocol cannot be used: {in_quotes(str(project.faults[0]), MAX_FAULT_CHARS)}",
                    recovery="`holdfast protocol check` shows every fault.",
                )
            branch, commit = await _git_state(worktree, project.protocol, branch, starting_commit)
            on_disk = await in_time(logged_numbers, worktree.path)
            begun_at = await Git(worktree.path).tips(with_tags=True) if worktree.is_git else None
            digest = await Git(worktree.path).digest(commit) if worktree.is_git else ""
            begun = definition.BegunWith(project.enforcement, project.configured, digest)
            kept = definition.dumps(project.protocol, begun)
            new = Run(0, "", worktree.root, worktree.project, project.protocol.name, kept, text, branch, commit)
            enforced = project.enforcement is Enforcement.ENFORCE
            unattended = await self.unattended_commits(str(worktree.path)) if enforced else []

            def write(tx: Tx) -> Started:
                queries.orphan(tx, worktree.root)
                active = queries.active(tx, worktree.root)
                if active is not None:
                    about = f"{active.id} ({quoted(active.objective, 100)}), in phase {active.phase}"
                    recovery = "Continue it (get_blocked_reason), or end it with session_end (abort: true gives it up)."
                    raise RunActive(f"Session already active: {about}.", recovery=recovery)
                run = queries.begin(tx, new, on_disk)
                if begun_at is not None:
                    queries.add_tips(tx, run, begun_at)
                if unattended:
                    made = f"MUST session_start before work: committed without a session: {', '.join(unattended)}"
                    queries.add_violation(tx, run, run.phase, None, made, "CRITICAL")
                return Started(run, project.protocol, project.enforcement)

            return await self._store.write(first_time(key, write))

    async def validate(self, root: Root | None, name: str, key: CallKey | None = None) -> Validation:
        """Check a gate, or ALL of them, and store the results."""
        async with self._step(root, key) as active:
            gates = active.protocol.gates if name == ALL else (active.gate(name),)
            return await self._steps.validate(active, gates)

    async def advance(self, root: Root | None, to: str | None, key: CallKey | None = None) -> Advanced:
        """Advance to the next phase, or up to `to`; each gate on the way is verified."""
        from holdfast.protocol.results import Advanced

        async with self._step(root, key, in_turn=True) as before:
            order = before.protocol.phases
            if to is not None and to not in order:
                raise UnknownGate(f"There is no phase {in_quotes(to, 64)}.", recovery=f"Phases: {', '.join(order)}.")
            if to == COMPLETE or before.standing.at == order[-2]:
                raise GateUnmet("Only session_end completes a session.", recovery="Call session_end with a summary.")
            target = to or order[order.index(before.standing.at) + 1]
            if order.index(target) <= order.index(before.standing.at):
                raise BadInput("to", f"must be a phase after {before.standing.at}")
            active, passed = await self._steps.advance(before, target)

            def write(tx: Tx) -> Advanced:
                queries.stand(tx, active.run, active.standing)
                return Advanced(active, passed)

            return await self._store.write(first_time(key, write))

    async def record(
        self, root: Root | None, name: str, kind: str, evidence: str, key: CallKey | None = None
    ) -> Recorded:
        """Store evidence that the agent records for a gate, compared with the project where possible."""
        from holdfast.protocol.results import Recorded

        active = await self._active_in(await self._worktree(root), key)
        gate = active.gate(name)
        _require("evidence_type", kind, MAX_KIND)
        _require("evidence", evidence, MAX_TEXT)
        judged = await judge(gate, kind, evidence, active.worktree)

        def write(tx: Tx) -> Recorded:
            queries.add_evidence(tx, active.run, gate.name, judged.kind, judged.subject, judged.detail, judged.source)
            return Recorded(active.run, gate, judged)

        return await self._store.write(first_time(key, write))

    async def end(
        self,
        root: Root | None,
        summary: str,
        *,
        key_decisions: Sequence[str] = (),
        next_session_notes: str | None = None,
        skip_qa: bool = False,
        abort: bool = False,
        key: CallKey | None = None,
    ) -> Ended:
        """End the run: the remaining gates are verified in order; the first unmet blocking one stops it."""
        from holdfast.protocol.results import Ended

        _require("summary", summary.strip(), MAX_TEXT)
        _require("next_session_notes", next_session_notes or None, MAX_TEXT)
        if abort and not model.says_something(summary):
            raise BadInput("summary", "must say why the session is given up")
        if len(key_decisions) > MAX_ITEMS or any(not 0 < len(one) <= MAX_OBJECTIVE for one in key_decisions):
            raise BadInput("key_decisions", f"must be at most {MAX_ITEMS} texts of 1 to {MAX_OBJECTIVE} characters")
        decisions = json.dumps(list(key_decisions), ensure_ascii=False) if key_decisions else None
        # Giving up does not wait for a command that hangs.
        async with self._step(root, key, in_turn=not abort) as active:
            last = replace(active.run, summary=summary.strip(), notes=next_session_notes or None)
            if abort:
                return await self._give_up(active, last)
            released = await self._steps.release(replace(active, ending=True, skip_qa=skip_qa))
            ended, passed = await self._steps.advance(await self._steps.renew(released), COMPLETE)
            commit = (await Git(active.worktree).state()).head

            def write(tx: Tx) -> Ended:
                queries.stand(tx, ended.run, ended.standing)
                queries.end(tx, replace(last, status=RunStatus.COMPLETE, end_commit=commit, decisions=decisions))
                return Ended(ended.run, commit, passed)

            return await self._store.write(first_time(key, write))

    async def _give_up(self, active: ActiveRun, last: Run) -> Ended:
        """End a run without its gates; those that are unmet are violations if anything was done in it."""
        from holdfast.protocol.results import Ended

        run = active.run
        commit = (await Git(active.worktree).state()).head
        idle = await untouched(active.worktree, run)
        unmet = [] if idle else model.open_gates(active.protocol, active.standing)

        def write(tx: Tx) -> Ended:
            for gate in unmet:
                requirement = f"{gate.level} {gate.name}: not met when the session was given up"
                queries.add_violation(tx, run, active.standing.at, gate.name, requirement, severity(gate))
            queries.end(tx, replace(last, status=RunStatus.ABORTED, end_commit=commit))
            return Ended(run, commit, (), given_up=True)

        return await self._store.write(first_time(active.key, write))

    async def blocked(self, root: Root | None) -> Blocked:
        """Check the gates that come before work or, from then on, before the end."""
        from holdfast.protocol.results import Blocked

        active = await self._active_in(await self._worktree(root))
        names = model.blocked_until(active.protocol, active.standing)
        return Blocked(active, tuple(await self._steps.missing(active, [active.gate(name) for name in names])))

    # -- what hooks, the command line and the mirror call -------------------------------------------------------------

    async def active_run(self, cwd: str, *, only_stored: bool = False) -> ActiveRun | None:
        """Return the active run of the worktree that a directory is in; `only_stored` without looking for commits."""
        worktree = await self._worktree_at(cwd)
        if worktree is None:
            return None
        return await (self._load(worktree) if only_stored else self._active(worktree))

    async def standing_at(self, cwd: str) -> tuple[ActiveRun | None, ProjectProtocol | None]:
        """Return the active run of the worktree that a directory is in; otherwise the project's configured protocol."""
        worktree = await self._worktree_at(cwd)
        if worktree is None:
            return None, None
        active = await self._active(worktree)
        return active, None if active else await in_time(configured_project, worktree.path)

    async def unattended_commits(self, cwd: str) -> list[str]:
        """Return the commits that were made after the last run of the worktree that a directory is in, oldest first."""
        worktree = await self._worktree_at(cwd)
        last = await self._store.read(lambda tx: queries.last_ended(tx, worktree.root)) if worktree else None
        if worktree is None or last is None or last.ended_at is None:
            return []
        try:
            return await Git(worktree.path).commits_after(last.ended_at, last.end_commit)
        except GitFault:
            return []

    async def start_run(self, cwd: str, objective: str) -> None:
        """Begin a run for an agent whose project lets the hook start it."""
        await self.start(Root(Path(cwd).as_uri(), None, RootSource.DIRECTORY), objective[:MAX_OBJECTIVE])

    async def record_seen(self, active: ActiveRun, kind: EvidenceKind, subject: str, detail: str) -> None:
        """Store evidence that a hook reported; the same evidence is stored once."""
        run, short = active.run, subject[:MAX_SUBJECT]

        def seen(tx: Tx) -> bool:
            return queries.has_evidence(tx, run, kind.value, short, detail, Source.HOOK)

        def write(tx: Tx) -> None:
            if not seen(tx):
                queries.add_evidence(tx, run, None, kind.value, short, detail, Source.HOOK)

        if not await self._store.read(seen):
            await self._store.write(write)
            await self._steps.reconsider(active)
            await self._gate.settle(active.worktree, partial(self.active_run, str(active.worktree), only_stored=True))

    async def missing(self, active: ActiveRun) -> list[tuple[Gate, Verdict]]:
        """Check the gates between here and the end; return those that are not met."""
        return await self._steps.missing(active, model.open_gates(active.protocol, active.standing))

    async def held(self) -> list[RunRecord]:
        """Return the active runs of all projects that a gate blocks, the last touched first."""
        return await self._store.read(
            lambda tx: [queries.record_of(tx, run) for run in queries.all_active(tx) if run.held_by]
        )

    async def active_runs(self) -> list[Run]:
        """Return the active runs of all projects, the last touched first."""
        return await self._store.read(queries.all_active)

    async def records(self, root: str, limit: int = HISTORY) -> list[RunRecord]:
        """Return the runs of a worktree's project that ended, newest first, after the worktree's own active one."""
        worktree = await in_time(worktree_of, path_of(root) or Path(root))
        project = worktree.project if worktree else root

        def read(tx: Tx) -> list[RunRecord]:
            active = queries.active(tx, root)
            runs = [*([active] if active else []), *queries.history(tx, project, limit)]
            return [queries.record_of(tx, run) for run in runs]

        return await self._store.read(read)

    async def records_of(self, root: Root | None) -> list[RunRecord]:
        """Return the runs of the caller's project."""
        return await self.records((await self._worktree(root)).root)

    async def validation(self, path: str, *, before_commit: bool) -> Validation | None:
        """Check every gate of a worktree's run, for scripts and CI; before a commit, only those before WORKING.

        Without an active run: the results of the one that was completed last, or what a fresh checkout shows.
        """
        worktree = await self._worktree_at(path)
        if worktree is None:
            return None
        async with self._settled(worktree):
            active = await self._active(worktree)
            if active is not None:
                return await self._steps.validate(active, active.protocol.gates_until(before_commit))
        last = await self._store.read(lambda tx: queries.last_ended(tx, worktree.root))
        if last is not None and last.status == RunStatus.COMPLETE:
            return await self._steps.results_of(last, only_before_work=before_commit)
        from holdfast.protocol.checkout import validate_checkout

        return await validate_checkout(worktree, self._checks, only_before_work=before_commit)

    async def runs(self, path: str | None, limit: int) -> list[Run]:
        """Return the runs of one worktree or of all, newest first."""
        worktree = await self._worktree_at(path) if path is not None else None
        if path is not None and worktree is None:
            return []
        root = worktree.root if worktree else None
        return await self._store.read(lambda tx: queries.recent(tx, root, limit))

    async def numbered(self, row_id: int) -> RunRecord | None:
        """Return a run by its number in the store."""

        def read(tx: Tx) -> RunRecord | None:
            run = queries.numbered(tx, row_id)
            return None if run is None else queries.record_of(tx, run)

        return await self._store.read(read)

    async def search(self, words: Sequence[str], limit: int) -> list[Run]:
        """Return the newest runs of all projects with all of these words in them."""
        return await self._store.read(lambda tx: queries.search(tx, words, limit))

    async def trust(self, root: str, digest: str, agent_digest: str = "") -> None:
        """Store the owner's trust in this content of a worktree: its protocol and its agent settings."""
        await self._store.write(lambda tx: queries.trust(tx, root, digest, agent_digest))

    async def untrust(self, root: str) -> bool:
        """Remove the owner's trust; return whether there was any."""
        return await self._store.write(lambda tx: queries.untrust(tx, root))

    async def trusted(self, root: str) -> tuple[str | None, str | None]:
        """Return the trusted digests of a worktree: of its protocol, and of its agent settings."""
        return await self._store.read(lambda tx: queries.trusted(tx, root))

    async def sweep(self) -> None:
        """Orphan runs that were untouched for a day."""
        await self._store.write(lambda tx: queries.orphan(tx))

    async def note_stop(self, by: str) -> None:
        """Store who stopped the daemon as a violation of each active run that enforces its protocol."""
        text = f"MUST keep Holdfast running while a session is active: `holdfast stop` was called by {by}"

        def write(tx: Tx) -> None:
            for run in queries.all_active(tx):
                if definition.begun_with(run.definition).enforcement == Enforcement.ENFORCE:
                    queries.add_violation(tx, run, run.phase, None, text, "CRITICAL")

        await self._store.write(write)

    async def settle_gates(self, *, all_open: bool = False) -> None:
        """Have git refuse commits where a run asks for it and nowhere else, whatever the last daemon left behind.

        With `all_open`, have it let them through everywhere, until a run is touched again.
        """
        for root in await self._store.read(queries.roots_to_settle):
            path = path_of(root) or Path(root)
            load = None if all_open else partial(self.active_run, str(path), only_stored=True)
            await self._gate.settle(path, load)

    def gates_off(self) -> list[tuple[str, str]]:
        """Return the worktrees of runs that enforce, where git does not call our hook, and why."""
        return list(self._gate.off.items())

    def applies_to(self, root: Root | None) -> bool:
        """Return whether a project has a protocol, so that its tools are listed there."""
        path = path_of(root.uri) if root else None
        worktree = worktree_of(path) if path else None
        marks = (".holdfast/protocol.toml", ".agents")
        return worktree is not None and any((worktree.path / mark).exists() for mark in marks)

    # -- looking up worktrees and runs --------------------------------------------------------------------------------

    async def _worktree(self, root: Root | None) -> Worktree:
        """Return the worktree of a caller's root; raises NoProject."""
        path = path_of(root.uri) if root else None
        worktree = await in_time(worktree_of, path) if path else None
        if worktree is None:
            raise NoProject(
                "The call names no project directory on this machine.",
                recovery="Start the agent in the project's directory, or bind it: init bind_root with mcpRootUri.",
            )
        return worktree

    async def _worktree_at(self, cwd: str) -> Worktree | None:
        """Return the worktree that a directory is in."""
        if not cwd.startswith("/") or "\0" in cwd or len(os.fsencode(cwd)) > MAX_PATH_BYTES:
            return None
        return await in_time(worktree_of, Path(cwd))

    async def _active_in(self, worktree: Worktree, key: CallKey | None = None) -> ActiveRun:
        """Return the active run of a worktree; raises NoRun, or AlreadyAnswered for a repeated call."""
        active = await self._active(worktree, key)
        if active is None:
            raise NoRun("There is no active session in this project.", recovery="Start one with session_start.")
        return active

    async def _active(self, worktree: Worktree, key: CallKey | None = None) -> ActiveRun | None:
        """Return the active run of a worktree, loaded for this call; raises AlreadyAnswered if the call is repeated.

        Commits that came too early are stored as violations, whoever made them.
        """
        active = await self._load(worktree, key)
        if active is None:
            return None
        await self._settle(worktree)
        return await self._with_early_commits(active)

    async def _load(self, worktree: Worktree, key: CallKey | None = None) -> ActiveRun | None:

        def read(tx: Tx) -> tuple[Run, Standing] | None:
            require_unanswered(tx, key, reads_only=True)
            run = queries.active(tx, worktree.root)
            if run is None or tx.now() - run.touched_at > queries.ORPHANED_AFTER_MS:
                return None
            return run, queries.standing(tx, run)

        loaded = await self._store.read(read)
        if loaded is None:
            return None
        run, standing = loaded
        project = await self._project_of(run, worktree)
        return ActiveRun(run, definition.loads(run.definition), standing, project, worktree.path, key)

    async def _with_early_commits(self, active: ActiveRun) -> ActiveRun:
        gate = active.commits_wait_for
        if gate is None:
            return active
        before = await self._store.read(lambda tx: queries.tips(tx, active.run))
        if before is None:  # it began without a repository
            return active
        found, now = await early_commits(active.worktree, before, gate)
        if not found:
            return active
        await self._steps.hold(active, gate, VIOLATION, *found, tips=now)
        return active.moved(model.held(active.standing, gate, VIOLATION))

    @asynccontextmanager
    async def _step(self, root: Root | None, key: CallKey | None, *, in_turn: bool = False) -> AsyncIterator[ActiveRun]:
        """Load the active run for a call that may block it or let it go on; those that move it wait for one another."""
        worktree = await self._worktree(root)
        turn = self._turns.setdefault(worktree.root, asyncio.Lock()) if in_turn else nullcontext()
        async with turn, self._settled(worktree):
            yield await self._active_in(worktree, key)

    @asynccontextmanager
    async def _settled(self, worktree: Worktree) -> AsyncIterator[None]:
        """Have git's hook follow what was stored, before the caller is answered: also if it is refused, or was before.

        A daemon that was killed may have stored something, and not have come to the hook; then the call is repeated.
        """
        try:
            yield
        finally:
            await self._settle(worktree)

    async def _settle(self, worktree: Worktree) -> None:
        if worktree.is_git:
            await self._gate.settle(worktree.path, lambda: self._load(worktree))

    async def _project_of(self, run: Run, worktree: Worktree) -> ProjectProtocol:
        """Read the project of a run, with the enforcement it began with; a lost or broken file is a violation."""
        project = await in_time(read_project, worktree.path)
        begun = definition.begun_with(run.definition)
        if begun.enforcement is None:
            return project
        broken = f"MUST keep {SETTINGS} while a session is active: " + (
            f"it is broken ({in_quotes(str(project.faults[0]), MAX_FAULT_CHARS)})" if project.faults else "it is gone"
        )
        if begun.configured and begun.enforcement != Enforcement.OFF and (project.faults or not project.configured):
            known = await self._store.read(lambda tx: queries.violations(tx, run))
            if not any(one.requirement == broken for one in known):
                await self._store.write(lambda tx: queries.add_violation(tx, run, run.phase, None, broken, "CRITICAL"))
        return replace(project, enforcement=begun.enforcement)


def _require(field: str, text: str | None, most: int) -> None:
    if text is not None and (not 0 < len(text) <= most or "\0" in text):
        raise BadInput(field, f"must be 1 to {most} characters without NUL bytes")


async def _git_state(
    worktree: Worktree, protocol: Protocol, branch: str | None, commit: str | None
) -> tuple[str | None, str | None]:
    """Return branch and starting commit: as given, otherwise from git."""
    needed = any(check.kind is CheckKind.COMMITTED for gate in protocol.gates for check in gate.checks)
    if not worktree.is_git:
        if needed:
            raise NoProject(
                f"{named(str(worktree.path), MAX_FAULT_CHARS)} is not a git repository.",
                recovery="Run `git init` there first.",
            )
        return branch, None
    git = Git(worktree.path)
    state = await git.state()
    # A run that began at an older commit would count earlier commits as its own work.
    if commit is not None and (state.head is None or await git.resolve(commit) != state.head):
        raise BadInput("starting_commit", "is not HEAD of this worktree", recovery="Leave it out to use HEAD.")
    return branch or state.branch, state.head
