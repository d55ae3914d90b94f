"""SQL of the moments at which an agent started over: what had been known, and what it was told."""
# ruff: noqa: S608 - the SQL is built from constants only

from __future__ import annotations

import json
from collections.abc import Sequence

from holdfast.briefing.knowledge import Knowledge, KnownCount
from holdfast.briefing.model import Occasion
from holdfast.identity.project import Root
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Row, Tx

KEPT = 40
"""How many breaks per root keep their content; of older ones only the time and the kinds stay."""
COLUMNS = "row_id, root, session_id, recovered, occasion, what, at, size"


@dataclass(frozen=True, slots=True)
class Break:
    """A moment at which an agent's context was gone, and it was told what had been done."""

    row_id: int
    root: str
    session_id: str
    """The session that was told."""
    recovered: str | None
    """The session whose work it was told of; None if that was its own, before a compaction."""
    occasion: str
    kinds: tuple[str, ...]
    at: int
    size: int | None
    """Bytes of the conversation until then."""
    told: str | None = None
    """The text that it was told; None if it is no longer kept, or was not asked for."""
    knew: Knowledge | None = None

    @property
    def of(self) -> str:
        """The session whose context was gone."""
        return self.recovered or self.session_id

    @property
    def is_loss(self) -> bool:
        """Whether a context was gone; one that begins is also told what teams, tasks and thoughts have to tell."""
        return is_loss(self.occasion, self.recovered)


def is_loss(occasion: str, recovered: str | None) -> bool:
    """Return whether a context was gone: another session's, or this one's own."""
    return recovered is not None or occasion in (Occasion.COMPACT.value, Occasion.RESUME.value)


def keep(tx: Tx, row_id: int, root: Root, session_id: str, told: str, knew: Knowledge) -> None:
    """Store what was told at a break, and what was known before; older content is dropped."""
    # In ASCII: what an agent read may hold characters that no database stores.
    content = f'{{"told":{json.dumps(told)},"knew":{knew.to_json()}}}'
    tx.run(
        # If the project was forgotten meanwhile, another break may have the row's number.
        "UPDATE recoveries SET content = :content WHERE row_id = :row_id AND session_id = :session",
        content=content,
        row_id=row_id,
        session=session_id,
    )
    tx.run(
        "UPDATE recoveries SET content = NULL WHERE content IS NOT NULL AND root = :root AND row_id <="
        " (SELECT row_id FROM recoveries WHERE root = :root ORDER BY row_id DESC LIMIT 1 OFFSET :kept)",
        root=root.uri,
        kept=KEPT,
    )


def of_session(tx: Tx, session_id: str, limit: int) -> list[Break]:
    """Return the breaks that a session was told at or ended with, the latest first, without their content."""
    found: dict[int, Break] = {}
    for column in ("session_id", "recovered"):
        sql = f"SELECT {COLUMNS} FROM recoveries WHERE {column} = :id ORDER BY row_id DESC LIMIT :limit"
        found |= {row["row_id"]: _break(row) for row in tx.all(sql, id=session_id, limit=limit)}
    return [found[row_id] for row_id in sorted(found, reverse=True)][:limit]


def told_to(tx: Tx, session_ids: Sequence[str], limit: int) -> list[Break]:
    """Return what each of these sessions was told, the latest first, without the content."""
    sql = f"SELECT {COLUMNS} FROM recoveries WHERE session_id = :id ORDER BY row_id DESC LIMIT :limit"
    return [_break(row) for one in session_ids for row in tx.all(sql, id=one, limit=limit)]


def whole(tx: Tx, row_id: int) -> Break | None:
    """Return a break with its content, as far as it is kept."""
    row = tx.one(f"SELECT {COLUMNS}, content FROM recoveries WHERE row_id = :id", id=row_id)
    return None if row is None else _break(row)


def counts_since(tx: Tx, since: int, limit: int) -> list[list[KnownCount]]:
    """Return what was known and told at the latest breaks since a time whose content is kept, without resumed ones."""
    rows = tx.all(
        "SELECT content FROM recoveries WHERE at >= :since AND content IS NOT NULL"
        " AND occasion <> 'resume' ORDER BY at DESC LIMIT :limit",
        since=since,
        limit=limit,
    )
    return [[KnownCount(**one) for one in json.loads(row["content"])["knew"].get("counts", ())] for row in rows]


def _break(row: Row) -> Break:
    content = row.pop("content", None)
    stored = {} if content is None else json.loads(content)
    knew = Knowledge.from_stored(stored["knew"]) if stored else None
    return Break(kinds=tuple(json.loads(row.pop("what"))), told=stored.get("told"), knew=knew, **row)
