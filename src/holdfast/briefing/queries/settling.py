"""SQL of open work: which sessions may still have some, and which are settled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.briefing.ledger.model import Ledger
from holdfast.briefing.queries import agent_sessions
from holdfast.briefing.queries.agent_sessions import AgentSession
from holdfast.briefing.unfinished import LaterSession, Settled
from holdfast.identity.project import Root, path_of
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx


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
        """Return the parts that show that it took up another session's work."""
        return LaterSession(self.ledger, self.seen.told_of if self.seen is not None else frozenset())


def weighed(tx: Tx, roots: Sequence[Root], most_latest: int, most_unsettled: int) -> list[WeighedSession]:
    """Return the latest sessions of a project and those that are not settled, the latest first."""
    ids = (*latest(tx, roots, most_latest), *latest(tx, roots, most_unsettled, " AND settled_at IS NULL"))
    sessions: list[WeighedSession] = []
    for session_id in dict.fromkeys(ids):
        sql = "SELECT content, root, machine, settled, settled_at FROM ledgers WHERE session_id = :id"
        if row := tx.one(sql, id=session_id):
            settled = Settled(row["settled"]) if row["settled_at"] is not None else None
            seen = agent_sessions.of(tx, session_id)
            ledger = Ledger.from_json(row["content"])
            sessions.append(WeighedSession(ledger, str(row["root"]), str(row["machine"]), settled, seen))
    return sorted(sessions, key=lambda one: one.ledger.last_at, reverse=True)


def settle(tx: Tx, settled: Iterable[tuple[str, Settled]], weighed_at: int) -> None:
    """Stop telling these sessions' work as open, except of a session that went on since it was weighed."""
    for session_id, why in settled:
        tx.run(
            "UPDATE ledgers SET settled = :why, settled_at = :now WHERE session_id = :id AND updated_at < :weighed",
            why=why.value,
            now=tx.now(),
            id=session_id,
            weighed=weighed_at,
        )


def dismiss(tx: Tx, roots: Sequence[Root], name: str) -> str | None:
    """Settle a session of a project by its id or the beginning of it; None unless exactly one is meant."""
    matches = [one for one in latest(tx, roots, 1_000) if one.startswith(name)]
    exact = [name] if name in matches else matches
    if len(exact) != 1:
        return None
    settle(tx, [(exact[0], Settled.DISMISSED)], tx.now() + 1)
    tx.emit("briefing.dismissed", exact[0], {})
    return exact[0]


def latest(tx: Tx, roots: Sequence[Root], limit: int, condition: str = "") -> list[str]:
    """Return the ids of a project's sessions that a condition holds for, the latest first."""
    times: dict[str, int] = {}
    for root in roots:
        for column, value in (("root", root.uri), ("project_key", root.key)):
            if value is not None:
                rows = tx.all(
                    f"SELECT session_id, last_at FROM ledgers WHERE {column} = :value{condition}"  # noqa: S608
                    " ORDER BY last_at DESC LIMIT :limit",
                    value=value,
                    limit=limit,
                )
                times.update({str(row["session_id"]): int(row["last_at"]) for row in rows})
    return sorted(times, key=lambda one: (-times[one], one))[:limit]
