"""The protocol's SQL: runs, evidence, gates, violations and trust, each query a function of a transaction."""

# ruff: noqa: S608 - the statements are built from constants only

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime

from holdfast.git.state import Tips
from holdfast.protocol import definition as definitions
from holdfast.protocol.errors import NoRun
from holdfast.protocol.model import Standing, Status, run_id
from holdfast.protocol.runs import Evidence, EvidenceKind, GateResult, Run, RunRecord, RunStatus, Source, Violation
from holdfast.store import Row, Tx, events
from holdfast.store.containing import containing
from holdfast.text import bounded_json

RUN = (
    "row_id, id, root, project, protocol, definition, objective, branch, starting_commit, phase, held_from, held_by,"
    " status, started_at, touched_at, ended_at, end_commit, summary, decisions, notes"
)
ORPHANED_AFTER_MS = 24 * 3_600_000
EVENTS_AT_ONCE = 500
SEARCHED = 10_000
"""Runs that a search looks at, the newest."""
MAX_EVIDENCE = 2_000
"""How many pieces of evidence are kept per run, newest first."""


def active(tx: Tx, root: str) -> Run | None:
    """Return the active run of a worktree."""
    return next(iter(_runs(tx, "root = :root AND status = 'active'", root=root)), None)


def all_active(tx: Tx) -> list[Run]:
    """Return the active runs of all worktrees, the last touched first."""
    alive = tx.now() - ORPHANED_AFTER_MS
    return _runs(tx, "status = 'active' AND touched_at >= :alive ORDER BY touched_at DESC LIMIT 200", alive=alive)


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


def numbered(tx: Tx, row_id: int) -> Run | None:
    """Return a run by its number in the store."""
    return next(iter(_runs(tx, "row_id = :row", row=row_id)), None)


def search(tx: Tx, words: Sequence[str], limit: int) -> list[Run]:
    """Return the newest runs with all of these words in what was aimed at, done, decided or noted."""
    where, params = containing(tx.engine, ("objective", "summary", "decisions", "notes", "id"), words)
    condition = f"row_id > (SELECT coalesce(max(row_id), 0) - :searched FROM protocol_runs) AND {where}"
    return _runs(tx, f"{condition} ORDER BY row_id DESC LIMIT :limit", searched=SEARCHED, limit=limit, **params)


def _runs(tx: Tx, condition: str, **values: str | int) -> list[Run]:
    return [Run(**row) for row in tx.all(f"SELECT {RUN} FROM protocol_runs WHERE {condition}", **values)]


def begin(tx: Tx, new: Run, on_disk: Collection[tuple[str, int]]) -> Run:
    """Insert a new run. Its number is above every stored one and every log on disk, given by day and number."""
    tx.lock(f"protocol:{new.project}")
    now = tx.now()
    day = datetime.fromtimestamp(now / 1000, UTC).strftime("%Y-%m-%d")
    stored = tx.all(
        "SELECT number FROM protocol_runs WHERE project = :project AND day = :day", project=new.project, day=day
    )
    number = 1 + max([0, *(row["number"] for row in stored), *(logged for on, logged in on_disk if on == day)])
    values = asdict(replace(new, id=run_id(day, number), started_at=now, touched_at=now))
    del values["row_id"]
    (row,) = _insert(tx, "protocol_runs", {**values, "day": day, "number": number}, returning=RUN)
    run = Run(**row)
    tx.emit("protocol.started", run.id, {"root": run.root})
    return run


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


def end(tx: Tx, run: Run) -> None:
    """Store the end of an active run: its status, commit, summary, decisions and notes."""
    tx.run(
        "UPDATE protocol_runs SET status = :status, ended_at = :now, touched_at = :now, end_commit = :end_commit,"
        " summary = :summary, decisions = :decisions, notes = :notes WHERE row_id = :id AND status = 'active'",
        status=run.status,
        now=tx.now(),
        end_commit=run.end_commit,
        summary=run.summary,
        decisions=run.decisions,
        notes=run.notes,
        id=run.row_id,
    )
    how = "protocol.completed" if run.status == RunStatus.COMPLETE else "protocol.aborted"
    tx.emit(how, run.id, {"root": run.root})


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
    if removed:
        tx.emit("protocol.forgotten", "project", {"runs": removed})
    return removed


def changed_roots(tx: Tx, seq: int | None) -> tuple[int, list[str]]:
    """Return the last event read, and the worktrees whose runs changed after an event; at first, all that may have."""
    if seq is None:
        return events.head(tx), roots_to_settle(tx)
    rows = tx.all(
        "SELECT seq, data FROM events WHERE seq > :seq AND kind LIKE 'protocol.%' ORDER BY seq LIMIT :limit",
        seq=seq,
        limit=EVENTS_AT_ONCE,
    )
    roots = {root for row in rows if isinstance(root := bounded_json.loads(row["data"]).get("root"), str)}
    return (rows[-1]["seq"] if len(rows) == EVENTS_AT_ONCE else max(seq, events.head(tx))), sorted(roots)


def knows(tx: Tx, root: str, session_id: str) -> bool:
    """Return whether a session is one of the project's runs, in any worktree."""
    row = tx.one(
        "SELECT 1 AS known FROM protocol_runs WHERE id = :id"
        " AND project IN (SELECT project FROM protocol_runs WHERE root = :root) LIMIT 1",
        id=session_id,
        root=root,
    )
    return row is not None


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
    known = {"kind": kind, "subject": subject, "detail": detail, "source": source.value}
    _insert(tx, "protocol_evidence", {"run": run.row_id, "gate": gate, "at": tx.now(), **known})
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
    known = {"head": tips.head, "branches": tips.branches, "remotes": [*tips.remotes, *tips.elsewhere]}
    detail = json.dumps(known, separators=(",", ":"))
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
    what = {"phase": phase, "requirement": requirement, "severity": severity, "gate": gate}
    _insert(tx, "protocol_violations", {"run": run.row_id, "at": tx.now(), **what})
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


def _insert(tx: Tx, table: str, values: Row, *, returning: str = "row_id") -> list[Row]:
    """Insert a row of these values, and return columns of it."""
    places = ", ".join(f":{name}" for name in values)
    return tx.all(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places}) RETURNING {returning}", **values)
