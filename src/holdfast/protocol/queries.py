"""The protocol's SQL: runs, evidence, gates, violations and trust, each query a function of a transaction."""

# ruff: noqa: S608 - the statements are built from constants only

from __future__ import annotations

import json
import re
from collections.abc import Collection
from datetime import UTC, datetime

from holdfast.git.state import Tips
from holdfast.protocol import definition as definitions
from holdfast.protocol.errors import NoRun
from holdfast.protocol.memories import ImportedState
from holdfast.protocol.model import INIT, Standing, Status, next_number, run_id
from holdfast.protocol.runs import Evidence, EvidenceKind, GateResult, Run, RunRecord, RunStatus, Source, Violation
from holdfast.store import Tx
from holdfast.text import bounded_json

RUN = (
    "row_id, id, root, project, protocol, definition, objective, branch, starting_commit, phase, held_from, held_by,"
    " status, started_at, touched_at, ended_at, end_commit, summary, decisions, notes"
)
ORPHANED_AFTER_MS = 24 * 3_600_000
RUN_ID = re.compile(r"(\d{4}-\d{2}-\d{2})-session-(\d{1,6})")
MAX_EVIDENCE = 2_000
"""How many pieces of evidence are kept per run, newest first."""


def active(tx: Tx, root: str) -> Run | None:
    """Return the active run of a worktree."""
    return next(iter(_runs(tx, "root = :root AND status = 'active'", root=root)), None)


def held(tx: Tx) -> list[Run]:
    """Return the active runs that a gate blocks, the last touched first."""
    return _runs(tx, "status = 'active' AND held_by IS NOT NULL ORDER BY touched_at DESC LIMIT 50")


def all_active(tx: Tx) -> list[Run]:
    """Return the active runs, the last touched first."""
    return _runs(tx, "status = 'active' ORDER BY touched_at DESC LIMIT 200")


def find(tx: Tx, row_id: int) -> Run | None:
    """Return the run in a row."""
    return next(iter(_runs(tx, "row_id = :id", id=row_id)), None)


def history(tx: Tx, project: str, limit: int) -> list[Run]:
    """Return the runs of a project that ended, in all its worktrees, newest first."""
    condition = "project = :project AND status <> 'active' ORDER BY row_id DESC LIMIT :limit"
    return _runs(tx, condition, project=project, limit=limit)


def last_ended(tx: Tx, root: str) -> Run | None:
    """Return the run of a worktree that ended last."""
    ended = _runs(tx, "root = :root AND status <> 'active' ORDER BY ended_at DESC, row_id DESC LIMIT 1", root=root)
    return next(iter(ended), None)


def recent(tx: Tx, root: str | None, limit: int) -> list[Run]:
    """Return the runs of one worktree or of all, newest first."""
    values = {} if root is None else {"root": root}
    condition = "1 = 1" if root is None else "root = :root"
    return _runs(tx, f"{condition} ORDER BY row_id DESC LIMIT :limit", limit=limit, **values)


def _runs(tx: Tx, condition: str, **values: str | int) -> list[Run]:
    return [Run(**row) for row in tx.all(f"SELECT {RUN} FROM protocol_runs WHERE {condition}", **values)]


def begin(
    tx: Tx,
    *,
    root: str,
    project: str,
    protocol: str,
    definition: str,
    objective: str,
    branch: str | None,
    starting_commit: str | None,
    on_disk: Collection[tuple[str, int]],
) -> Run:
    """Insert a new run. Its number is above every stored one and every log on disk, given by day and number."""
    tx.lock(f"protocol:{project}")
    now = tx.now()
    day = datetime.fromtimestamp(now / 1000, UTC).strftime("%Y-%m-%d")
    row = tx.one(
        "SELECT max(number) AS n FROM protocol_runs WHERE project = :project AND day = :day", project=project, day=day
    )
    number = next_number(
        [row["n"]] if row and row["n"] is not None else [], [logged for on, logged in on_disk if on == day]
    )
    run = _insert(
        tx,
        (day, number),
        root=root,
        project=project,
        protocol=protocol,
        definition=definition,
        objective=objective,
        branch=branch,
        starting_commit=starting_commit,
        phase=INIT,
        status=RunStatus.ACTIVE,
    )
    tx.emit("protocol.started", run.id, {"root": root})
    return run


def import_run(tx: Tx, state: ImportedState, *, root: str, project: str, protocol: str, definition: str) -> bool:
    """Add a run that another tool recorded to the history, under its own id; False if that id is known."""
    named = RUN_ID.fullmatch(state.session_id)
    if named is None:
        return False
    tx.lock(f"protocol:{project}")
    day, number = named[1], int(named[2])
    known = tx.one(
        "SELECT 1 AS known FROM protocol_runs WHERE project = :project AND day = :day AND number = :number",
        project=project,
        day=day,
        number=number,
    )
    if known is not None:
        return False
    run = _insert(
        tx,
        (day, number),
        root=root,
        project=project,
        protocol=protocol,
        definition=definition,
        objective=state.objective or "(not recorded)",
        branch=state.branch,
        starting_commit=state.starting_commit,
        phase=state.phase or INIT,
        status=RunStatus.ORPHANED,
    )
    for gate, said in state.completed:
        add_evidence(tx, run, gate, "imported", said, "", Source.CLAIMED)
    tx.emit("protocol.imported", run.id, {"root": root})
    return True


def _insert(tx: Tx, numbered: tuple[str, int], *, status: RunStatus, **values: str | None) -> Run:
    """Insert a run's row under its day and number."""
    day, number = numbered
    now = tx.now()
    (row,) = tx.all(
        "INSERT INTO protocol_runs (id, day, number, root, project, protocol, definition, objective, branch,"
        " starting_commit, phase, status, started_at, touched_at, ended_at)"
        " VALUES (:id, :day, :number, :root, :project, :protocol, :definition, :objective, :branch, :starting_commit,"
        f" :phase, :status, :now, :now, :ended) RETURNING {RUN}",
        id=run_id(day, number),
        day=day,
        number=number,
        status=status.value,
        now=now,
        ended=None if status is RunStatus.ACTIVE else now,
        **values,
    )
    return Run(**row)


def stand(tx: Tx, run: Run, standing: Standing) -> None:
    """Store the run's standing. Raises NoRun if it ended meanwhile."""
    stored = tx.run(
        "UPDATE protocol_runs SET phase = :phase, held_from = :held_from, held_by = :held_by, touched_at = :now"
        " WHERE row_id = :id AND status = 'active'",
        phase=standing.phase,
        held_from=standing.held_from,
        held_by=standing.held_by,
        now=tx.now(),
        id=run.row_id,
    )
    if not stored:
        raise NoRun(f"{run.id} has ended meanwhile.", recovery="Start another with session_start.")
    tx.emit("protocol.phase", run.id, {"root": run.root, "phase": standing.phase})


def touch(tx: Tx, run: Run) -> None:
    """Mark the run as in use."""
    tx.run("UPDATE protocol_runs SET touched_at = :now WHERE row_id = :id", now=tx.now(), id=run.row_id)


def end(
    tx: Tx,
    run: Run,
    commit: str | None,
    summary: str,
    decisions: str | None,
    notes: str | None,
    status: RunStatus = RunStatus.COMPLETE,
) -> None:
    """Mark an active run as complete, or as given up."""
    tx.run(
        "UPDATE protocol_runs SET status = :status, ended_at = :now, touched_at = :now, end_commit = :end_commit,"
        " summary = :summary, decisions = :decisions, notes = :notes WHERE row_id = :id AND status = 'active'",
        status=status.value,
        now=tx.now(),
        end_commit=commit,
        summary=summary,
        decisions=decisions,
        notes=notes,
        id=run.row_id,
    )
    tx.emit("protocol.completed" if status is RunStatus.COMPLETE else "protocol.aborted", run.id, {"root": run.root})


def orphan(tx: Tx, root: str | None = None) -> None:
    """Orphan the runs of one worktree or of all that were untouched for a day, so that they no longer block."""
    rows = tx.all(
        "UPDATE protocol_runs SET status = :orphaned, ended_at = :now WHERE status = 'active' AND touched_at < :before"
        + (" AND root = :root" if root is not None else "")
        + " RETURNING id, root",
        orphaned=RunStatus.ORPHANED.value,
        now=tx.now(),
        before=tx.now() - ORPHANED_AFTER_MS,
        **({} if root is None else {"root": root}),
    )
    for row in rows:
        tx.emit("protocol.orphaned", row["id"], {"root": row["root"]})


def carry_over(tx: Tx, before: int, now: int) -> None:
    """Keep runs from being orphaned by a leap of the clock."""
    tx.run(
        "UPDATE protocol_runs SET touched_at = :now WHERE status = 'active' AND touched_at >= :before",
        now=now,
        before=before - ORPHANED_AFTER_MS,
    )


def roots_to_settle(tx: Tx) -> list[str]:
    """Return the worktrees whose gate may not be as it should: of active runs, and of those that ended lately."""
    rows = tx.all(
        "SELECT DISTINCT root FROM protocol_runs WHERE status = 'active' OR ended_at >= :lately",
        lately=tx.now() - 2 * ORPHANED_AFTER_MS,
    )
    return [str(row["root"]) for row in rows]


def forget(tx: Tx, root: str, project: str | None) -> int:
    """Remove every run of a worktree and of its project, with all their data; return how many there were."""
    tx.lock(f"protocol:{project or root}")
    removed = tx.run(
        "DELETE FROM protocol_runs WHERE root = :root OR project = :project", root=root, project=project or root
    )
    untrust(tx, root)
    forget_mirror(tx, root)
    if removed:
        tx.emit("protocol.forgotten", "project", {"runs": removed})
    return removed


def forget_mirror(tx: Tx, root: str) -> None:
    """Remove the mirror's progress for a worktree."""
    tx.run("DELETE FROM protocol_mirror WHERE root = :root", root=root)


def record_of(tx: Tx, run: Run) -> RunRecord:
    """Return a run with all that is stored of it."""
    return RunRecord(run, definitions.loads(run.definition), gates(tx, run), evidence(tx, run), violations(tx, run))


def gates(tx: Tx, run: Run) -> tuple[GateResult, ...]:
    """Return the last result of each gate."""
    rows = tx.all(
        "SELECT gate, status, evidence, checked_at, fingerprint FROM protocol_gates WHERE run = :run", run=run.row_id
    )
    return tuple(GateResult(**row) for row in rows)


def standing(tx: Tx, run: Run) -> Standing:
    """Return the stored standing of a run."""
    statuses = {result.gate: Status(result.status) for result in gates(tx, run)}
    return Standing(run.phase, run.held_from, run.held_by, statuses)


def record_gate(tx: Tx, run: Run, gate: str, status: Status, evidence: str, fingerprint: str | None) -> None:
    """Store the result of a gate."""
    tx.run(
        "INSERT INTO protocol_gates (run, gate, status, evidence, fingerprint, checked_at)"
        " VALUES (:run, :gate, :status, :evidence, :fingerprint, :now)"
        " ON CONFLICT (run, gate) DO UPDATE SET status = excluded.status, evidence = excluded.evidence,"
        " fingerprint = excluded.fingerprint, checked_at = excluded.checked_at",
        run=run.row_id,
        gate=gate,
        status=status.value,
        evidence=evidence,
        fingerprint=fingerprint,
        now=tx.now(),
    )
    tx.emit("protocol.gate", run.id, {"root": run.root, "gate": gate, "status": status.value})


def evidence(tx: Tx, run: Run) -> tuple[Evidence, ...]:
    """Return the evidence of a run, newest last."""
    rows = tx.all(
        "SELECT gate, kind, subject, detail, source, at FROM protocol_evidence WHERE run = :run"
        " ORDER BY row_id DESC LIMIT :limit",
        run=run.row_id,
        limit=MAX_EVIDENCE,
    )
    return tuple(Evidence(**row) for row in reversed(rows))


def has_evidence(tx: Tx, run: Run, kind: str, subject: str, detail: str, source: Source) -> bool:
    """Return whether this evidence is already stored."""
    row = tx.one(
        "SELECT 1 AS known FROM protocol_evidence WHERE run = :run AND kind = :kind AND subject = :subject"
        " AND detail = :detail AND source = :source LIMIT 1",
        run=run.row_id,
        kind=kind,
        subject=subject,
        detail=detail,
        source=source.value,
    )
    return row is not None


def add_evidence(tx: Tx, run: Run, gate: str | None, kind: str, subject: str, detail: str, source: Source) -> None:
    """Store a piece of evidence."""
    tx.run(
        "INSERT INTO protocol_evidence (run, gate, kind, subject, detail, source, at)"
        " VALUES (:run, :gate, :kind, :subject, :detail, :source, :now)",
        run=run.row_id,
        gate=gate,
        kind=kind,
        subject=subject,
        detail=detail,
        source=source.value,
        now=tx.now(),
    )
    touch(tx, run)
    tx.emit("protocol.evidence", run.id, {"root": run.root, "kind": kind, "source": source.value})


def tips(tx: Tx, run: Run) -> Tips | None:
    """Return where HEAD and the branches were when they were last judged; None for a run that never was."""
    row = tx.one(
        "SELECT detail FROM protocol_evidence WHERE run = :run AND kind = :kind AND source = :source"
        " ORDER BY row_id DESC LIMIT 1",
        run=run.row_id,
        kind=EvidenceKind.TIPS.value,
        source=Source.SERVER.value,
    )
    if row is None:
        return None
    found = bounded_json.loads(str(row["detail"]))
    return Tips(found["head"], found["branches"], tuple(found["remotes"]))


def add_tips(tx: Tx, run: Run, tips: Tips) -> None:
    """Store where HEAD and the branches are."""
    detail = json.dumps({"head": tips.head, "branches": tips.branches, "remotes": tips.remotes}, separators=(",", ":"))
    add_evidence(tx, run, None, EvidenceKind.TIPS.value, "", detail, Source.SERVER)


def violations(tx: Tx, run: Run) -> tuple[Violation, ...]:
    """Return the violations of a run, in order."""
    rows = tx.all(
        "SELECT at, phase, requirement, severity, recovery, gate FROM protocol_violations WHERE run = :run"
        " ORDER BY row_id",
        run=run.row_id,
    )
    return tuple(Violation(**row) for row in rows)


def add_violation(tx: Tx, run: Run, phase: str, gate: str | None, requirement: str, severity: str) -> None:
    """Store a violation; the same one only once while it is unrecovered."""
    open_one = tx.one(
        "SELECT 1 AS known FROM protocol_violations WHERE run = :run AND requirement = :requirement"
        " AND recovery IS NULL",
        run=run.row_id,
        requirement=requirement,
    )
    if open_one is not None:
        return
    tx.run(
        "INSERT INTO protocol_violations (run, at, phase, requirement, severity, gate)"
        " VALUES (:run, :now, :phase, :requirement, :severity, :gate)",
        run=run.row_id,
        now=tx.now(),
        phase=phase,
        requirement=requirement,
        severity=severity,
        gate=gate,
    )
    tx.emit("protocol.violation", run.id, {"root": run.root, "requirement": requirement})


def recover(tx: Tx, run: Run, gate: str, recovery: str) -> None:
    """Mark the violations of a gate as recovered."""
    tx.run(
        "UPDATE protocol_violations SET recovery = :recovery WHERE run = :run AND gate = :gate AND recovery IS NULL",
        recovery=recovery,
        run=run.row_id,
        gate=gate,
    )


def trusted(tx: Tx, root: str) -> tuple[str | None, str | None]:
    """Return the digests that the owner trusts: of a worktree's protocol, and of its agent settings.

    Both are stored in one column as `first+second`; older rows have only the first.
    """
    row = tx.one("SELECT digest FROM protocol_trust WHERE root = :root", root=root)
    if row is None:
        return None, None
    digest, _, agent_digest = str(row["digest"]).partition("+")
    return digest, agent_digest or None


def trust(tx: Tx, root: str, digest: str, agent_digest: str = "") -> None:
    """Store the owner's trust in this content."""
    tx.run(
        "INSERT INTO protocol_trust (root, digest, at) VALUES (:root, :digest, :now)"
        " ON CONFLICT (root) DO UPDATE SET digest = excluded.digest, at = excluded.at",
        root=root,
        digest=f"{digest}+{agent_digest}",
        now=tx.now(),
    )
    tx.emit("protocol.trusted", root, {"root": root})


def untrust(tx: Tx, root: str) -> bool:
    """Remove the owner's trust; return whether there was any."""
    return tx.run("DELETE FROM protocol_trust WHERE root = :root", root=root) > 0
