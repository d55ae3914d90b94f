"""SQL of the agent sessions that hooks reported: where each was seen, how it ended, and what it was told."""
# ruff: noqa: S608 - the SQL is built from constants only

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import cached_property

from holdfast.identity import forgotten_queries
from holdfast.identity.project import Root, RootSource
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Row, Tx, leases

NAMES = (
    *("session_id", "root", "project_key", "machine", "pid", "pid_mark", "transcript", "source"),
    *("started_at", "seen_at", "ended_at", "end_reason", "alive_until", "told"),
)
COLUMNS = ", ".join(NAMES) + (
    ", (SELECT NULLIF(read_to, 0) FROM ledgers WHERE ledgers.session_id = agent_sessions.session_id) AS read_to"
)
SESSIONS = leases.Lease("agent_sessions", "session_id", until="alive_until", holder=None, held="ended_at IS NULL")
MAX_REMEMBERED_MARKS = 100
"""Digests of lines that a session was told; older ones are told again if they come back."""
OF_SESSION = "session:"
"""Prefix of the marks that name the sessions about whose open work it was told."""


@dataclass(frozen=True, slots=True)
class StartedSession:
    """An agent session whose hook says that it begins or continues."""

    session_id: str
    root: Root
    machine: str
    source: str
    transcript: str | None
    pid: int | None
    pid_mark: str | None
    """The process's start time, which tells it from a later one with the same number."""


@dataclass(frozen=True, slots=True)
class AgentSession:
    """An agent session as its hooks reported it."""

    session_id: str
    root: str
    project_key: str | None
    machine: str
    pid: int | None
    pid_mark: str | None
    transcript: str | None
    source: str
    started_at: int
    seen_at: int
    ended_at: int | None
    end_reason: str | None
    alive_until: int | None
    """Until when its machine vouches for it, where several machines share a store."""
    told: str | None
    """What it was told, as it is stored."""
    read_to: int | None
    """How far its transcript was read; None if it never was."""

    @property
    def digests(self) -> tuple[str, ...]:
        """The digests of the lines that it was told."""
        return tuple(json.loads(self.told or "[]"))

    @cached_property
    def told_of(self) -> frozenset[str]:
        """The sessions whose open work it was told."""
        if OF_SESSION not in (self.told or ""):
            return frozenset()
        return frozenset(one.removeprefix(OF_SESSION) for one in self.digests if one.startswith(OF_SESSION))

    @property
    def project(self) -> Root:
        """The project that it was seen in."""
        return Root(self.root, self.project_key, RootSource.DIRECTORY)


def seen(tx: Tx, session: StartedSession) -> None:
    """Store that a session begins or continues; one that had ended is open again."""
    tx.run(
        "INSERT INTO agent_sessions (session_id, root, project_key, machine, pid, pid_mark, transcript, source,"
        " started_at, seen_at) VALUES (:session, :root, :key, :machine, :pid, :mark, :transcript, :source, :now, :now)"
        " ON CONFLICT (session_id) DO UPDATE SET root = excluded.root, project_key = excluded.project_key,"
        " machine = excluded.machine, pid = excluded.pid, pid_mark = excluded.pid_mark,"
        " transcript = coalesce(excluded.transcript, agent_sessions.transcript), source = excluded.source,"
        " seen_at = excluded.seen_at, ended_at = NULL, end_reason = NULL, alive_until = NULL",
        session=session.session_id,
        root=session.root.uri,
        key=session.root.key,
        machine=session.machine,
        pid=session.pid,
        mark=session.pid_mark,
        transcript=session.transcript,
        source=session.source,
        now=tx.now(),
    )
    tx.emit("briefing.session", session.session_id, {"root": session.root.uri, "source": session.source})


def ended(tx: Tx, session_id: str, reason: str) -> None:
    """Store that a session ended in an orderly way."""
    changed = tx.run(
        "UPDATE agent_sessions SET ended_at = :now, seen_at = :now, end_reason = :reason WHERE session_id = :session",
        now=tx.now(),
        reason=reason,
        session=session_id,
    )
    if changed:
        tx.emit("briefing.ended", session_id, {"reason": reason})


def of(tx: Tx, session_id: str) -> AgentSession | None:
    """Return a session by its id."""
    row = tx.one(f"SELECT {COLUMNS} FROM agent_sessions WHERE session_id = :session", session=session_id)
    return AgentSession(**row) if row else None


def latest(tx: Tx, roots: Sequence[Root], limit: int) -> list[AgentSession]:
    """Return the sessions seen last in each of some projects, under any of its roots, the latest first."""
    rows = all_near(tx, COLUMNS, "agent_sessions", roots, "", "seen_at", limit)
    sessions = {row["session_id"]: AgentSession(**row) for row in rows}
    return sorted(sessions.values(), key=lambda one: one.seen_at, reverse=True)


def all_near(
    tx: Tx, columns: str, table: str, roots: Sequence[Root], condition: str, newest_by: str, limit: int
) -> list[Row]:
    """Return the newest rows of each root and each project key, some twice; one statement, each part by its index."""
    names = [(f"root{at}", "root", root.uri) for at, root in enumerate(roots)]
    names += [(f"key{at}", "project_key", root.key) for at, root in enumerate(roots) if root.key is not None]
    parts = (
        f"SELECT * FROM (SELECT {columns} FROM {table} WHERE {column} = :{name}{condition}"
        f" ORDER BY {newest_by} DESC LIMIT :limit) AS {name}"
        for name, column, _ in names
    )
    return tx.all(" UNION ALL ".join(parts), limit=limit, **{name: value for name, _, value in names})


def unended(tx: Tx, machine: str, since: int) -> list[AgentSession]:
    """Return the sessions of a machine that were seen since a time and did not end normally."""
    rows = tx.all(
        f"SELECT {COLUMNS} FROM agent_sessions WHERE machine = :machine AND ended_at IS NULL AND seen_at >= :since",
        machine=machine,
        since=since,
    )
    return [AgentSession(**row) for row in rows]


def vouch(tx: Tx, session_ids: Sequence[str], lease_ms: int) -> None:
    """Renew their machine's word that these sessions are running."""
    for session_id in session_ids:
        leases.renew(tx, SESSIONS, lease_ms, key=session_id)


def forget(tx: Tx, root: Root) -> int:
    """Delete what is known of a project's sessions, under every root; returns how many there were."""
    where = "root = :root OR project_key = :key"
    parameters = {"root": root.uri, "key": root.key}
    rows = tx.all(f"SELECT session_id FROM agent_sessions WHERE {where}", **parameters)
    rows += tx.all(f"SELECT session_id FROM ledgers WHERE {where}", **parameters)
    sessions = {str(row["session_id"]) for row in rows}
    for session_id in sessions:
        # The lines that another machine was to find; those of a team's conversation are the team's.
        tx.run(
            "DELETE FROM transcript_lines WHERE session_id = :id"
            " AND NOT EXISTS (SELECT 1 FROM conversations WHERE session_id = :id)",
            id=session_id,
        )
    tx.run(f"DELETE FROM agent_sessions WHERE {where}", **parameters)
    tx.run(f"DELETE FROM ledgers WHERE {where}", **parameters)
    tx.run("DELETE FROM recoveries WHERE root = :root", root=root.uri)
    forgotten_queries.note(tx, root)
    tx.emit("briefing.forgotten", "project", {"sessions": len(sessions)})
    return len(sessions)


def mark_told(tx: Tx, session_id: str, digests: Collection[str]) -> None:
    """Store what a session was told."""
    known = of(tx, session_id)
    before = [one for one in (known.digests if known else ()) if one not in digests]
    tx.run(
        "UPDATE agent_sessions SET told = :told WHERE session_id = :session",
        told=json.dumps([*before, *digests][-MAX_REMEMBERED_MARKS:]),
        session=session_id,
    )


def recovered(
    tx: Tx, root: Root, session_id: str, recovered_id: str | None, of: str | None, occasion: str, kinds: Sequence[str]
) -> int:
    """Store that a session got something back, and how long the transcript `of` a session was; returns the row."""
    row = tx.one(
        "INSERT INTO recoveries (root, session_id, recovered, occasion, what, at, size) VALUES"
        " (:root, :session, :recovered, :occasion, :what, :now, (SELECT read_to FROM ledgers WHERE session_id = :of))"
        " RETURNING row_id",
        root=root.uri,
        session=session_id,
        recovered=recovered_id,
        occasion=occasion,
        what=json.dumps(list(kinds)),
        now=tx.now(),
        of=of,
    )
    assert row is not None  # noqa: S101 - an INSERT returns its row
    return int(row["row_id"])
