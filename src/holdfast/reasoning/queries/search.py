"""The SQL of full-text search, a variant for each engine; functions of a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.reasoning.fulltext import INDEXED, Term, indexed, match_expression
from holdfast.reasoning.model import Status
from holdfast.reasoning.queries.sessions import Scope, conditions
from holdfast.store import Tx

if TYPE_CHECKING:
    from holdfast.reasoning.results import FoundThought

INDEXED_AT_ONCE = 200

_RANKED = {
    "sqlite": (
        "SELECT t.session_id, t.number, s.title, s.status FROM thoughts_fts f"
        " JOIN thoughts t ON t.row_id = f.rowid JOIN sessions s ON s.id = t.session_id"
        " WHERE thoughts_fts MATCH :match AND {scope} ORDER BY f.rank, t.row_id DESC LIMIT :limit OFFSET :offset"
    ),
    "postgres": (
        "SELECT t.session_id, t.number, s.title, s.status FROM thoughts_fts f"
        " JOIN thoughts t ON t.row_id = f.row_id JOIN sessions s ON s.id = t.session_id"
        " WHERE f.words @@ to_tsquery('simple', :match) AND {scope}"
        " ORDER BY ts_rank(f.words, to_tsquery('simple', :match)) DESC, t.row_id DESC LIMIT :limit OFFSET :offset"
    ),
}
# On PostgreSQL a row may be committed after later ones, so the thousand rows before the newest are checked as well.
_PENDING = {
    "sqlite": (
        "SELECT row_id, substr(content, 1, :indexed) AS content FROM {table}"
        " WHERE row_id > (SELECT coalesce(max(id), 0) FROM {index}_docsize) ORDER BY row_id LIMIT :limit"
    ),
    "postgres": (
        "SELECT row_id, substr(content, 1, :indexed) AS content FROM {table} t"
        " WHERE row_id > (SELECT coalesce(max(row_id), 0) - 1000 FROM {index})"
        " AND NOT EXISTS (SELECT 1 FROM {index} i WHERE i.row_id = t.row_id) ORDER BY row_id LIMIT :limit"
    ),
}
_ADD = {
    "sqlite": "INSERT INTO {index} (rowid, content) VALUES (:row_id, :content)",
    "postgres": (
        "INSERT INTO {index} (row_id, words) VALUES (:row_id, to_tsvector('simple', :content))"
        " ON CONFLICT (row_id) DO NOTHING"
    ),
}


def hits(tx: Tx, scope: Scope, terms: Sequence[Term], limit: int, offset: int = 0) -> list[FoundThought]:
    from holdfast.reasoning.results import FoundThought

    where, params = conditions(scope, "s.")
    rows = tx.all(
        _RANKED[tx.engine].format(scope=where),
        **params,
        match=match_expression(tx.engine, terms),
        limit=limit,
        offset=offset,
    )
    return [FoundThought(row["session_id"], row["number"], row["title"], Status(row["status"])) for row in rows]


def fill(tx: Tx, table: str, index: str) -> bool:
    """Index some of a table's rows in order; says whether there may be more.

    The index itself says how far it has come, so a restored, salvaged or migrated store is indexed from the start.
    """
    rows = tx.all(_PENDING[tx.engine].format(table=table, index=index), indexed=INDEXED, limit=INDEXED_AT_ONCE)
    for row in rows:
        tx.run(_ADD[tx.engine].format(index=index), row_id=row["row_id"], content=indexed(row["content"]))
    return len(rows) == INDEXED_AT_ONCE
