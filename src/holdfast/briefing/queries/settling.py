"""Which sessions may still have open work, and which are settled: the SQL of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from holdfast.briefing.ledger.model import Ledger
from holdfast.briefing.unfinished import Settled
from holdfast.identity.project import Root
from holdfast.store import Row, Tx


def unsettled(tx: Tx, roots: Sequence[Root], limit: int) -> list[str]:
    """The sessions of a project that are not settled, the latest first."""
    return _latest(tx, roots, limit, " AND settled_at IS NULL")


def latest(tx: Tx, roots: Sequence[Root], limit: int) -> list[str]:
    """The sessions of a project, settled or not, the latest first."""
    return _latest(tx, roots, limit, "")


def settle(tx: Tx, settled: Mapping[str, Settled], weighed_at: int) -> None:
    """Tell these sessions' work no longer as open, unless one has gone on since it was weighed."""
    for session_id, why in settled.items():
        tx.run(
            "UPDATE ledgers SET settled = :why, settled_at = :now WHERE session_id = :id AND updated_at < :weighed",
            why=why.value,
            now=tx.now(),
            id=session_id,
            weighed=weighed_at,
        )


def dismiss(tx: Tx, roots: Sequence[Root], name: str) -> str | None:
    """Settle a session of a project by its id, or by how it begins; None where not exactly one is meant."""
    found = [one for one in _latest(tx, roots, 1_000, "") if one == name or one.startswith(name)]
    exact = [one for one in found if one == name] or found
    if len(exact) != 1:
        return None
    settle(tx, {exact[0]: Settled.DISMISSED}, tx.now() + 1)
    tx.emit("briefing.dismissed", exact[0], {})
    return exact[0]


def ledgers(tx: Tx, session_ids: Iterable[str]) -> list[tuple[Ledger, Row]]:
    """These sessions' ledgers, with where each was and on which machine."""
    sql = "SELECT content, root, project_key, machine, settled, settled_at FROM ledgers WHERE session_id = :id"
    rows = [row for one in session_ids if (row := tx.one(sql, id=one)) is not None]
    return [(Ledger.from_json(row["content"]), row) for row in rows]


def _latest(tx: Tx, roots: Sequence[Root], limit: int, condition: str) -> list[str]:
    latest: dict[str, int] = {}
    for root in roots:
        for column, value in (("root", root.uri), ("project_key", root.key)):
            if value is not None:
                rows = tx.all(
                    f"SELECT session_id, last_at FROM ledgers WHERE {column} = :value{condition}"  # noqa: S608
                    " ORDER BY last_at DESC LIMIT :limit",
                    value=value,
                    limit=limit,
                )
                latest.update({str(row["session_id"]): int(row["last_at"]) for row in rows})
    return sorted(latest, key=lambda one: (-latest[one], one))[:limit]
