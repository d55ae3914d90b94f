"""SQL of open work: which sessions may still have some, and which are settled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from holdfast.briefing.ledger.model import Ledger
from holdfast.briefing.queries import agent_sessions
from holdfast.briefing.queries.agent_sessions import AgentSession
from holdfast.briefing.unfinished import LaterSession, Settled
from holdfast.identity.project import Root, RootSource, path_of
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Row, Tx
from holdfast.teams.model import read_frame

_SEEN = ", ".join(f"a.{name}" for name in agent_sessions.NAMES)


@dataclass(frozen=True, slots=True)
class WeighedSession:
    """A session that may have left work open."""

    ledger: Ledger
    root: str
    machine: str
    settled: Settled | None
    """Why nothing of it is open any more."""
    seen: AgentSession | None
    """As its hooks told of it; None if only its transcript does."""
    transcript: str
    """Where it is on its machine."""

    @property
    def id(self) -> str:
        """Its id."""
        return self.ledger.session_id

    @property
    def directory(self) -> str | None:
        """Where it worked."""
        path = path_of(self.root)
        return self.ledger.cwd or (None if path is None else str(path))

    def as_later(self) -> LaterSession:
        """Return the facts that show whether it continued another session's work."""
        return LaterSession(self.ledger, self.seen.told_of if self.seen is not None else frozenset())


def weighed(tx: Tx, roots: Sequence[Root], most_latest: int, most_unsettled: int) -> list[WeighedSession]:
    """Return the latest and the unsettled sessions of a project, the latest first, except teams' sessions."""
    ids = (*latest(tx, roots, most_latest), *latest(tx, roots, most_unsettled, " AND settled_at IS NULL"))
    names = {f"id{number}": one for number, one in enumerate(dict.fromkeys(ids))}
    if not names:
        return []
    wanted = ", ".join(f":{name}" for name in names)
    rows = tx.all(
        "SELECT l.content, l.root AS ledger_root, l.machine AS ledger_machine, l.transcript AS file,"  # noqa: S608
        f" l.settled, l.settled_at, NULLIF(l.read_to, 0) AS read_to, {_SEEN} FROM ledgers l"
        " LEFT JOIN agent_sessions a ON a.session_id = l.session_id"
        f" WHERE l.session_id IN ({wanted})"
        " AND NOT EXISTS (SELECT 1 FROM conversations c WHERE c.session_id = l.session_id)",
        **names,
    )
    sessions = [_weighed(row) for row in rows]
    people = [one for one in sessions if read_frame(one.ledger.latest_request or "") is None]
    return sorted(people, key=lambda one: (-one.ledger.last_at, ids.index(one.id)))


@lru_cache(maxsize=32)
def _ledger(content: str) -> Ledger:
    """Parse a ledger that is only read. Cached: every agent that starts in a project weighs the same ones."""
    return Ledger.from_json(content)


def _weighed(row: Row) -> WeighedSession:
    seen = {name: row[name] for name in agent_sessions.NAMES}
    return WeighedSession(
        _ledger(row["content"]),
        str(row["ledger_root"]),
        str(row["ledger_machine"]),
        Settled(row["settled"]) if row["settled_at"] is not None else None,
        None if seen["session_id"] is None else AgentSession(**seen, read_to=row["read_to"]),
        str(row["file"]),
    )


def roots_with_unsettled(tx: Tx, machine: str, limit: int) -> list[Root]:
    """Return the projects in which sessions of a machine may have left work open, the latest first."""
    rows = tx.all(
        "SELECT root, max(project_key) AS key FROM ledgers WHERE machine = :machine AND settled_at IS NULL"
        " GROUP BY root ORDER BY max(last_at) DESC LIMIT :limit",
        machine=machine,
        limit=limit,
    )
    return [Root(row["root"], row["key"], RootSource.DIRECTORY) for row in rows]


def settle(tx: Tx, settled: Iterable[tuple[str, Settled]], weighed_at: int) -> None:
    """Stop listing these sessions' work as open, except for sessions that continued since they were examined."""
    for session_id, why in settled:
        tx.run(
            "UPDATE ledgers SET settled = :why, settled_at = :now WHERE session_id = :id AND updated_at < :weighed",
            why=why.value,
            now=tx.now(),
            id=session_id,
            weighed=weighed_at,
        )


def dismiss(tx: Tx, roots: Sequence[Root], name: str) -> str | None:
    """Settle a session of a project by its id or a prefix of it; None unless exactly one matches."""
    matches = [one for one in latest(tx, roots, 1_000) if one.startswith(name)]
    exact = [name] if name in matches else matches
    if len(exact) != 1:
        return None
    settle(tx, [(exact[0], Settled.DISMISSED)], tx.now() + 1)
    tx.emit("briefing.dismissed", exact[0], {})
    return exact[0]


def latest(tx: Tx, roots: Sequence[Root], limit: int, condition: str = "") -> list[str]:
    """Return the ids of a project's sessions that a condition holds for, the latest first."""
    rows = agent_sessions.all_near(tx, "session_id, last_at", "ledgers", roots, condition, "last_at", limit)
    times = {str(row["session_id"]): int(row["last_at"]) for row in rows}
    return sorted(times, key=lambda one: (-times[one], one))[:limit]
